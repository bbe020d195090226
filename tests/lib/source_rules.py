"""The rules of this repository as code: which folder may include which, which symbols code below the I/O line may use,
and how long a file may be. The "I/O line" divides the folders: code below it must not read a clock, a file, a socket,
a random source or another thread's state, so that the simulator can run it (docs/ARCHITECTURE.md).

Each check takes the tree (or the objects) to check and returns a list of violations, empty if there are none, so that
a test can apply it to a planted mistake. tests/integration/test_source_rules.py runs all checks.
"""
import glob
import os
import re
import subprocess

# The layers, lowest first. A folder may include itself and folders of lower layers, and none of its own layer. serve
# is the driver that starts the engines and HTTP, so it is above them.
LAYERS = (
    ("base",),
    ("wire",),
    ("command",),
    ("keyspace",),
    ("acl", "heat", "contract", "route"),
    ("telemetry",),
    ("core",),
    ("push", "absorb", "spread", "isolate"),
    ("local",),
    ("stages",),
    # ------------------------------ the I/O line ------------------------------
    ("tls",),
    ("upstream",),
    ("engine", "http"),
    ("sim",),
    ("serve",),
    ("cli",),
)
LAYER_OF = {folder: number for number, floor in enumerate(LAYERS) for folder in floor}
PURE = [folder for floor in LAYERS[:10] for folder in floor]

LINES_MAX = 1000
CORE_HEADER_LINES_MAX = 300
MITIGATIONS = ("absorb", "spread", "isolate")  # a folder in them is a stage

# The symbols of the C library that code below the I/O line may use: memory, bytes, text, numbers, and the processor's
# features (__cpu_model). None of them reads a clock, a file, a socket, another thread or a random source; add a symbol
# only if the same holds for it.
PURE_SYMBOLS = set("""
    memchr memcmp memcpy memmove memset memrchr memmem bcmp
    strlen strnlen strcmp strncmp strcasecmp strncasecmp strchr strrchr strstr strspn strcspn
    strpbrk strcpy strncpy stpcpy strcat memccpy
    snprintf vsnprintf sscanf __isoc99_sscanf __isoc23_sscanf
    strtol strtoul strtoll strtoull strtod strtold strtof __errno_location
    __ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc tolower toupper
    isalnum isalpha isdigit isxdigit isspace isprint isupper islower
    qsort bsearch abs labs llabs
    ceil ceill floor floorl round roundl lround llround trunc truncl rint rintl fabs fabsl
    exp exp2 expl expm1 log log2 log10 log1p logl pow powl powf sqrt sqrtl ldexp frexp modf modfl
    fmod fmodl fmin fmax isnan isinf isinfl isnanl __isinfl __isnanl __isinf __isnan __fpclassify
    __fpclassifyl __signbit __signbitl
    malloc calloc realloc free
    __stack_chk_fail __popcountdi2 __udivti3 __umodti3 __divti3 __modti3 __muloti4
    _GLOBAL_OFFSET_TABLE_
    __cpu_model
""".split())

# Files of upstream and engine/redis that have threads, sockets and clocks (scripts.c: a lock, since all workers share
# its table). The simulator runs all others.
WITH_IO = ("conn.c", "names.c", "redis.c", "monitor_thread.c", "scripts.c")

# The two files that end the process on a broken invariant print the reason on standard error.
MAY_ABORT = {"base/check.c": {"stderr", "fprintf", "fwrite", "abort"},
              "base/mem.c": {"stderr", "fprintf", "fwrite", "abort"}}

# Symbols that a compiler adds for instrumentation.
INSTRUMENTED = re.compile(r"__(asan|ubsan|tsan|sanitizer|gcov|llvm)_|__lsan_")

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def sources(root, folders=("src", "sim")):
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(root, folder, "**", "*.[ch]"), recursive=True)):
            yield os.path.relpath(path, root)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def folder_of(path):
    """The folder of a source: wire for src/wire/reply.c and wire/reply.h, sim for sim/x.c."""
    parts = path.split("/")
    return parts[1] if parts[0] == "src" else parts[0]


def include_violations(root):
    violations = []
    for path in sources(root):
        here = folder_of(path)
        if here not in LAYER_OF:
            violations.append(f"{path}: no floor is known for {here}/ (tests/lib/source_rules.py)")
            continue
        for included in re.findall(r'^\s*#\s*include\s+"([^"]+)"', read(root, path), re.M):
            there = folder_of(included)
            if "/" not in included or ".." in included.split("/"):
                violations.append(f'{path}: "{included}" is not written from src/')
            elif there not in LAYER_OF:
                violations.append(f'{path}: "{included}" is in no known folder')
            elif there != here and LAYER_OF[there] >= LAYER_OF[here]:
                violations.append(f'{path}: "{included}" does not go down: '
                                  f"{here} must not know {there}")
    return violations


def stage_of(path):
    """The stage's folder (absorb/cache) of a source; None if it belongs to no stage."""
    parts = path.removeprefix("src/").split("/")
    return "/".join(parts[:2]) if parts[0] in MITIGATIONS and len(parts) > 2 else None


def stage_violations(root):
    """A stage includes the core and the files that its parent folder shares, and no other stage. LAYERS ensures that
    the core includes no stage."""
    violations = []
    for path in sources(root):
        if folder_of(path) not in MITIGATIONS:
            continue
        for included in re.findall(r'^\s*#\s*include\s+"([^"]+)"', read(root, path), re.M):
            there = stage_of(included)
            if there and there != stage_of(path):
                violations.append(f'{path}: "{included}": stages do not include each other, nor does what '
                                  "they share")
    return violations


def undefined_symbols(obj):
    """The undefined symbols of an object file."""
    listing = subprocess.run(["nm", "-u", "-P", obj], check=True, capture_output=True, text=True)
    return {line.split()[0].split("@")[0] for line in listing.stdout.splitlines() if line}


def impure_symbols(obj, source):
    """Undefined symbols that code below the I/O line must not use. `source`: the path within src/."""
    allowed = PURE_SYMBOLS | MAY_ABORT.get(source, set())
    return sorted(symbol for symbol in undefined_symbols(obj)
                  if symbol not in allowed and not symbol.startswith("hs_")
                  and not INSTRUMENTED.match(symbol))


def purity_violations(root, build):
    """Checks every object below the I/O line; a missing object is a violation, too."""
    violations, seen = [], 0
    for path in sources(root, [f"src/{folder}" for folder in PURE]):
        if not path.endswith(".c"):
            continue
        obj = os.path.join(build, "obj", path[:-2] + ".o")
        if not os.path.exists(obj):
            violations.append(f"{path}: {obj} is missing")
            continue
        seen += 1
        bad = impure_symbols(obj, path[len("src/"):])
        if bad:
            violations.append(f"{path}: below the I/O line, and asks for {', '.join(bad)}")
    if not seen:
        violations.append(f"no object found below {build}/obj")
    return violations


def sans_io_violations(root, build):
    """Files above the I/O line that the simulator runs: they use no clock, socket, thread or random source, either."""
    violations = []
    for path in sources(root, ("src/upstream", "src/engine/redis")):
        obj = os.path.join(build, "obj", path[:-2] + ".o")
        if path.endswith(".c") and os.path.basename(path) not in WITH_IO and os.path.exists(obj):
            bad = impure_symbols(obj, path[len("src/"):]) + sorted(
                symbol for symbol in undefined_symbols(obj) if symbol.startswith("hs_conn_"))
            if bad:
                violations.append(f"{path}: runs in the simulator, and asks for {', '.join(bad)}")
    return violations


def mutable_globals(obj):
    """Mutable global variables: objects in .data, .bss and similar sections. Constant tables with pointers are in
    .data.rel.ro and are allowed."""
    listing = subprocess.run(["objdump", "-t", obj], check=True, capture_output=True, text=True)
    found = re.findall(r" O (\.(?:data|bss|tdata|tbss|data\.rel\.local)|\*COM\*)\s+[0-9a-f]+ (\S+)$",
                       listing.stdout, re.M)
    return sorted(name for _section, name in found if not INSTRUMENTED.match(name))


def global_violations(root, build):
    violations = []
    for path in sources(root):
        obj = os.path.join(build, "obj", path[:-2] + ".o")
        if path.endswith(".c") and os.path.exists(obj):
            violations += [f"{path}: {name} is a global that can change"
                           for name in mutable_globals(obj)]
    return violations


def length_violations(root):
    folders = ("src", "sim", "tests", "fuzz", "bench")
    violations = [f"{path}: {lines} lines; a file over {LINES_MAX} is two files"
                  for path in sources(root, folders)
                  if (lines := read(root, path).count("\n")) > LINES_MAX]
    violations += [f"{path}: {lines} lines; a header of the core over {CORE_HEADER_LINES_MAX} is two headers"
                   for path in sources(root, ("src/core",))
                   if path.endswith(".h")
                   and (lines := read(root, path).count("\n")) > CORE_HEADER_LINES_MAX]
    return violations


def unfinished_violations(root):
    return [f"{path}:{number}: {line.strip()}"
            for path in sources(root, ("src", "sim", "fuzz", "bench"))
            for number, line in enumerate(read(root, path).splitlines(), 1)
            if UNFINISHED.search(line)]


def mirror_violations(root):
    """tests/unit/test_X.c tests a module X: a file X.c or X.h, a folder X, or folder_file; test_X_aspect.c tests an
    aspect of it. Every folder with code below the I/O line has a test."""
    names = {}  # allowed name of a test: the folder that it tests
    for path in sources(root):
        folder, stem = folder_of(path), os.path.splitext(os.path.basename(path))[0]
        below = os.path.basename(os.path.dirname(path))
        names.update({stem: folder, folder: folder, below: folder,
                      f"{folder}_{stem}": folder, f"{below}_{stem}": folder})
    violations, tested = [], set()
    for path in sources(root, ("tests/unit",)):
        if not os.path.basename(path).startswith("test_") or not path.endswith(".c"):
            continue
        name = os.path.basename(path)[len("test_"):-2]
        parts = name.split("_")
        module = next((module for count in range(len(parts), 0, -1)
                       if (module := "_".join(parts[:count])) in names), None)
        if module:
            tested.add(names[module])
        else:
            violations.append(f"{path}: src/ has no module called {name}")
    has_code = {folder_of(path) for path in sources(root, ("src",)) if path.endswith(".c")}
    violations += [f"src/{folder}: has code and no unit test"
                   for folder in PURE if folder in has_code - tested]
    return violations
