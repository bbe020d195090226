"""Failing disks for servers whose data lies on them.

    disk = ThinDisk()           # or LossyDisk, BrokenDisk …; raises Unavailable where the kernel refuses
    with disk.used():           # servers started inside see disk.folder
        server = servers.Heatsink(data=disk.folder)
        disk.fail()
        …
        server.kill9()
        disk.heal()             # then the folder has what the disk really has
        server.start()
    disk.close()

Mounted disks live in a mount namespace of their own, which ends with the test process, even if that is killed.
"""

import contextlib
import fcntl
import mmap
import os
import shlex
import shutil
import struct
import subprocess
import tempfile
from unittest import mock

import servers

MIB = 1 << 20


class Unavailable(Exception):
    """The kernel of this machine does not let tests create such a disk."""


@contextlib.contextmanager
def wrapped(command):
    """A context: servers started inside run under `command` (HEATSINK_WRAP)."""
    wrap = " ".join([*command, os.environ.get("HEATSINK_WRAP", "")])
    with mock.patch.dict(os.environ, {"HEATSINK_WRAP": wrap}):
        yield


class MountedDisk:
    """A sparse ext4 image on a tmpfs, through a loop device."""

    TMPFS_BYTES = 96 * MIB
    IMAGE_BYTES = 128 * MIB
    OPTIONS = "loop"
    MOUNT_TRIES = 20

    def __init__(self):
        if os.geteuid() != 0:
            raise Unavailable("mounting needs root")
        self.base = tempfile.mkdtemp(prefix="heatsink-disk-")
        self.below = os.path.join(self.base, "below")
        self.image = os.path.join(self.below, "image")
        self.mounted = os.path.join(self.base, "mounted")
        self.folder = os.path.join(self.mounted, "data")
        # The holder ends with this process, because its standard input closes then.
        self.holder = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c",
                                        "echo; exec cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE)
        try:
            if not self.holder.stdout.readline():
                raise Unavailable("no mount namespace")
            os.mkdir(self.below)
            os.mkdir(self.mounted)
            self.run("mount", "-t", "tmpfs", "-o", f"size={self.TMPFS_BYTES}", "none", self.below)
            self.run("truncate", "-s", str(self.IMAGE_BYTES), self.image)
            self.run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0", self.image)
            self.mount()
        except BaseException:
            self.close()
            raise

    def inside(self):
        return ["nsenter", "-t", str(self.holder.pid), "-m", "--"]

    def run(self, *command):
        done = subprocess.run([*self.inside(), *command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise Unavailable(f"{command[0]}: {done.stdout.decode(errors='replace').strip()}")
        return done.stdout.decode().strip()

    def mount(self):
        self.run("mount", "-o", self.OPTIONS, self.image, self.mounted)
        # Linux's loop driver reports a partly written request as complete. A request of one page is written or
        # fails.
        self.set_attribute("/sys/block/{}/queue/max_sectors_kb", str(mmap.PAGESIZE // 1024))

    def set_attribute(self, path, value):
        """Sets an attribute of the loop device; {} in the path stands for its name."""
        device = self.run("findmnt", "-n", "-o", "SOURCE", self.mounted)
        with open(path.format(os.path.basename(device)), "w", encoding="ascii") as file:
            file.write(value)

    def mount_again(self):
        """Checks and mounts the image again, as an operator would; retries while the loop device is busy."""
        self.run("umount", self.mounted)
        for left in reversed(range(self.MOUNT_TRIES)):
            subprocess.run([*self.inside(), "e2fsck", "-fy", self.image], check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                return self.mount()
            except Unavailable:
                if not left:
                    raise

    def reach(self, path):
        """The path of a file on the disk, for this process."""
        return f"/proc/{self.holder.pid}/root{path}"

    def used(self):
        return wrapped(self.inside())

    def heal(self):
        """Mounts the image again, so that the kernel drops pages that the disk did not take."""
        self.mount_again()

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()
        self.holder.stdout.close()
        shutil.rmtree(self.base, ignore_errors=True)


class ThinDisk(MountedDisk):
    """A volume that is full below the filesystem: writes succeed at first and are lost later."""

    FILL_BYTES = 64 * 1024

    def filler(self):
        return self.reach(os.path.join(self.below, "filler"))

    def fail(self):
        with open(self.filler(), "wb", buffering=0) as filler:
            with contextlib.suppress(OSError):  # the disk is full, as intended
                while True:
                    filler.write(bytes(self.FILL_BYTES))

    def heal(self):
        os.unlink(self.filler())
        super().heal()


class BrokenDisk(MountedDisk):
    """A filesystem that is shut down: every later write and sync fails."""

    EXT4_IOC_SHUTDOWN = 0x8004587d
    FLAGS = 2  # shut down without flushing the journal

    def fail(self):
        fd = os.open(self.reach(self.mounted), os.O_RDONLY)
        try:
            fcntl.ioctl(fd, self.EXT4_IOC_SHUTDOWN, struct.pack("I", self.FLAGS))
        finally:
            os.close(fd)


class ReadOnlyDisk(MountedDisk):
    """A filesystem that becomes read-only after an error."""

    OPTIONS = "loop,errors=remount-ro"

    def fail(self):
        self.set_attribute("/sys/fs/ext4/{}/trigger_fs_error", "a test")


class LossyDisk:
    """The server's system calls fail as tests/lib/faults.h describes. The library is preloaded, which works on every
    machine but not with a sanitizer build."""

    WRITE, META, SYNC, RESERVE, NAME, LOSE = (1 << bit for bit in range(6))
    FOREVER = 0x7fffffff
    CONTROL = "6I104s"
    LOST = "QQ512s"

    def __init__(self, kinds, file="", nth=1, times=FOREVER, error=5):
        library = os.path.join(os.path.dirname(servers.heatsink_path()), "preload", "faults.so")
        with open(servers.heatsink_path(), "rb") as program:
            if b"__sanitizer_" in program.read():
                raise Unavailable("a sanitizer's server loads no library before its own")
        self.base = tempfile.mkdtemp(prefix="heatsink-disk-")
        self.folder = os.path.join(self.base, "data")
        self.control = os.path.join(self.base, "control")
        self.journal = os.path.join(self.base, "journal")
        self.environment = ["env", f"LD_PRELOAD={library}", f"FAULTS_CONTROL={self.control}",
                            f"FAULTS_JOURNAL={self.journal}"]
        self.fault = (kinds, nth, times, error, 0, 0, (file or self.folder).encode())
        self.set(0, 0, 0, 0, 0, 0, b"")

    def set(self, *fields):
        with open(self.control, "r+b" if os.path.exists(self.control) else "wb") as control:
            control.write(struct.pack(self.CONTROL, *fields))

    def used(self):
        return wrapped([shlex.quote(word) for word in self.environment])

    def fail(self):
        # The field that arms the fault is written last.
        with open(self.control, "r+b", buffering=0) as control:
            image = struct.pack(self.CONTROL, *self.fault)
            control.seek(4)
            control.write(image[4:])
            control.seek(0)
            control.write(image[:4])

    def heal(self):
        """Restores the bytes that lost writes replaced, the last write first."""
        self.set(0, 0, 0, 0, 0, 0, b"")
        lost, size = [], struct.calcsize(self.LOST)
        if os.path.exists(self.journal):
            with open(self.journal, "rb") as journal:
                while head := journal.read(size):
                    at, length, path = struct.unpack(self.LOST, head)
                    lost.append((path.split(b"\0")[0].decode(), at, journal.read(length)))
            os.unlink(self.journal)
        for path, at, old in reversed(lost):
            with open(path, "r+b") as file:
                file.seek(at)
                file.write(old)

    def close(self):
        shutil.rmtree(self.base, ignore_errors=True)
