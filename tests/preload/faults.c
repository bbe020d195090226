/* faults.h for a whole server: LD_PRELOAD=faults.so FAULTS_CONTROL=file FAULTS_JOURNAL=file (tests/lib/disks.py sets
 * them). The control file holds a struct faults_control, mapped by both sides; a test writes to it while the server
 * runs. Without a control file all calls are passed on unchanged. */
#include "tests/lib/faults.h"

#include <sys/mman.h>

__attribute__((constructor)) static void start(void)
{
	const char *control = getenv("FAULTS_CONTROL"), *journal = getenv("FAULTS_JOURNAL");
	int fd = control ? open(control, O_RDWR | O_CLOEXEC) : -1;
	void *map = fd < 0 ? MAP_FAILED
			   : mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return;
	if (journal)
		faults_journal = open(journal, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	faults = map;
}
