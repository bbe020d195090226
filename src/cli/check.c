/* `heatsink check`: reads everything in a data folder and reports damage. */
#include "base/check.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "cli/folder.h"

#include <stddef.h>
#include <string.h>

enum { WHOLE, DAMAGED, NOT_CHECKED };

struct options {
	const char *data;
};

static const struct hs_flag rows[] = {
	{"data", "DIR", "data", "the data folder; no server may be using it", hs_flag_read_text,
	 HS_FLAG_AT(struct options, data)},
};

static const struct hs_flags flags = {
	.program = "heatsink check",
	.before = "heatsink check: read everything in a data folder and verify every checksum\n\n",
	.after = "\nNothing is written. Exit status: 0 everything is whole; 1 damage was found;\n"
		 "2 the folder could not be checked.\n",
	.rows = rows,
	.count = sizeof rows / sizeof *rows,
};

static const char unseen[] =
	"A running server detects a damaged record when it reads it: the reply "
	"is an error. It does not\n"
	"detect damage to the pages of a tree: keys below them may be "
	"missing, or the server may crash.\n"
	"This check compares counts and order: run it when you suspect the "
	"disk. No check can detect that\n"
	"all files together were replaced by an older copy.\n";

int hs_cli_check(int argc, char **argv)
{
	struct options options = {0};
	struct hs_folder folder;
	bool damaged;
	int rc = hs_flags_read(&flags, &options, argc, argv, stderr);

	if (rc != 0)
		return rc < 0 ? NOT_CHECKED : WHOLE;
	if (hs_folder_open(&folder, options.data) != 0) {
		fprintf(stderr, "heatsink check: %s\n", folder.error);
		hs_folder_close(&folder);
		return strncmp(folder.error, "damaged", 7) == 0 ? DAMAGED : NOT_CHECKED;
	}
	hs_folder_audit(&folder);
	damaged = hs_folder_damaged(&folder);
	printf("%s: %llu keys and %llu expiries in the stores, %llu records in the log; "
	       "%llu damaged records, %llu expiries that do not match their record, "
	       "%llu stores with damaged meta pages, %llu faults of the trees\n",
	       damaged ? "DAMAGED" : "whole", (unsigned long long)folder.keys,
	       (unsigned long long)folder.expiries,
	       (unsigned long long)folder.log.records + (unsigned long long)folder.log.beyond,
	       (unsigned long long)folder.damaged, (unsigned long long)folder.misfits,
	       (unsigned long long)folder.metas, (unsigned long long)folder.broken);
	if (damaged)
		printf("'heatsink repair --data %s --dry-run' shows what a repair would do.\n\n%s",
		       options.data, unseen);
	hs_folder_close(&folder);
	return damaged ? DAMAGED : WHOLE;
}
