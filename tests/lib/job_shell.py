"""A shell with job control and one job, for tests of programs that can be stopped with Ctrl-Z.

    Terminal([sys.executable, job_shell.__file__, "heatsink", "top"])

The job runs in the foreground, in a process group of its own. When it stops, the shell takes the terminal back, writes
"job stopped by 20" (the signal's number) and reads a line, whatever it contains; then the job continues in the
foreground. When the job ends, the shell ends with the same status.

With --pending before the command, the job starts with SIGTSTP blocked and pending, as if Ctrl-Z came just after the job
had blocked it.

Other shells restore the terminal's settings when a job stops. This shell leaves them as the job set them, so that a
test can check them.
"""
import os
import signal
import sys


def run_job(command, pending):
    """Starts the job; returns its process id, which is also its process group."""
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        if pending:
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTSTP])
            os.kill(os.getpid(), signal.SIGTSTP)
        os.execvp(command[0], command)
    return job


def main(args):
    pending = args[0] == "--pending"
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # tcsetpgrp would stop the shell while the job has the terminal
    job = run_job(args[pending:], pending)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        os.tcsetpgrp(0, os.getpgrp())
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        os.write(1, b"\r\njob stopped by %d\r\n" % os.WSTOPSIG(status))
        os.read(0, 1024)
        os.tcsetpgrp(0, job)
        os.killpg(job, signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
