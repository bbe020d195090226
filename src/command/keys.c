/* Where the keys are among the arguments of a request. */
#include "command/command.h"

size_t hs_command_keys(const struct hs_command *command, size_t argc, size_t *first, size_t *step)
{
	size_t last;

	if (command->key_first == 0)
		return 0;
	*first = (size_t)command->key_first;
	*step = (size_t)command->key_step;
	if (command->key_last >= 0) {
		last = (size_t)command->key_last;
		if (last >= argc)
			last = argc - 1; /* wraps for 0 arguments: the check below sees it */
	} else {
		last = argc - (size_t)-command->key_last;
	}
	if (last < *first || last >= argc)
		return 0;
	return (last - *first) / *step + 1;
}
