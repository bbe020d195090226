"""Scripts for tests/integration/test_sim_cluster.py, one for each rule that the simulated Cluster must follow, in the
language of tests/lib/simulated.py. The test restores slots and roles that a script has changed.
"""

BEGIN_MOVE = ["connect y 0", "connect z 1",
              "z: CLUSTER SETSLOT $slot0b IMPORTING $id0",
              "y: CLUSTER SETSLOT $slot0b MIGRATING $id1"]
END_MOVE = ["z: CLUSTER SETSLOT $slot0b NODE $id1", "+ y: CLUSTER SETSLOT $slot0b NODE $id1", "agree"]


def migrate(*keys, to=1):
    return f"y: MIGRATE $addr{to} '' 0 60000 KEYS " + " ".join(f"{key}@0b" for key in keys)


ROUTES = {
    "moved to the owner": [
        "connect a 0", "connect r 3", "a: GET x@1 ; SET x@2 1 ; GET x@0", "r: GET x@0 ; SET x@0 1",
        "a: WATCH x@1", "a: EXISTS x@1 y@1", "a: OBJECT ENCODING x@1", "a: ASKING ; GET x@1"],
    "keys of several slots": [
        "connect a 0", "a: MGET x@0 x@1", "a: MGET x@0 y@0", "a: MGET x@0 x@0b", "a: MSET x@1 1 y@1 2",
        "a: DEL x@0 x@0b ; EXISTS x@0 ; RENAME x@0 y@0b", "a: WATCH x@0 x@0b"],
    "no keys": [
        "connect a 0", "connect r 3", "a: PING ; ECHO x ; DBSIZE ; MULTI ; PING ; EXEC",
        "r: PING ; DBSIZE ; MULTI ; EXEC", "a: CLUSTER KEYSLOT x@1", "r: CLUSTER MYID"],
    "a replica that may be read": [
        "connect a 0", "connect r 3", "a: SET x@0 1 ; SET y@0 2", "sync", "r: GET x@0",
        "r: READONLY", "r: GET x@0 ; MGET x@0 y@0 ; GET x@1 ; SET x@0 2 ; EXISTS x@0 z@0",
        "r: MULTI ; GET x@0 ; GET y@0 ; EXEC", "r: MULTI ; GET x@0 ; SET x@0 3 ; EXEC",
        "r: READWRITE ; GET x@0", "r: READONLY ; RESET ; GET x@0", "r: FLUSHALL", "r: DBSIZE"],
    "asking": [
        *BEGIN_MOVE, "connect b 1", "b: GET x@0b", "b: ASKING ; GET x@0b ; GET x@0b",
        "b: ASKING ; SET x@0b 1 ; ASKING ; GET x@0b", "b: ASKING ; MGET x@0b y@0b",
        "b: ASKING ; PING ; GET x@0b", "b: ASKING ; MGET x@0b x@0b", "b: ASKING ; GETX ; GET x@0b"],
    "a slot that leaves": [
        "connect a 0", "a: SET x@0b 1 ; SET y@0b 2", *BEGIN_MOVE, "a: GET x@0b ; GET z@0b",
        "a: MGET x@0b y@0b ; MGET x@0b z@0b ; MGET v@0b w@0b", "a: SET z@0b 1", "a: DEL x@0b z@0b",
        "a: EXISTS x@0b z@0b", "a: MSET x@0b 1 v@0b 2", "a: WATCH z@0b", "a: SET x@0 1",
        "a: RENAME x@0b z@0b"],
    "keys on their way": [
        "connect a 0", "connect b 1", "a: SET x@0b 1 ; SET y@0b 2 PXAT 4102444800000", *BEGIN_MOVE,
        migrate("x"), "a: GET x@0b", "b: GET x@0b ; ASKING ; GET x@0b",
        "a: MGET x@0b y@0b", "b: ASKING ; MGET x@0b y@0b", migrate("y", "nothing"),
        "a: MGET x@0b y@0b", "b: ASKING ; MGET x@0b y@0b ; ASKING ; PEXPIRETIME y@0b",
        migrate("nothing"), "y: CLUSTER COUNTKEYSINSLOT $slot0b", "z: CLUSTER COUNTKEYSINSLOT $slot0b",
        *END_MOVE, "a: GET x@0b", "b: GET x@0b ; MGET x@0b y@0b", "connect r 4", "sync",
        "r: READONLY", "r: MGET x@0b y@0b"],
    "a move in a transaction": [
        "connect a 0", "connect b 1", "a: SET x@0b 1 ; SET y@0b 2", *BEGIN_MOVE,
        "a: MULTI ; GET x@0b ; EXEC", "a: MULTI ; GET x@0b ; GET z@0b ; EXEC",
        "a: MULTI ; GET x@0b ; GET y@0b ; EXEC", "a: MULTI ; GET x@0b", migrate("x"), "a: EXEC",
        "a: MULTI ; GET x@0b ; GET y@0b ; EXEC",
        "b: ASKING ; MULTI ; GET x@0b ; EXEC", "b: ASKING ; MULTI ; GET x@0b ; GET z@0b ; EXEC",
        "b: MULTI ; ASKING ; GET x@0b ; EXEC", "b: ASKING ; MULTI ; MGET x@0b y@0b ; EXEC",
        "a: MULTI ; MGET x@0b y@0b ; EXEC", "a: MULTI ; GET y@0b", migrate("y"), *END_MOVE, "a: EXEC",
        "b: MULTI ; GET x@0b ; GET y@0b ; EXEC"],
    "a move that is called off": [
        "connect a 0", "a: SET x@0b 1", *BEGIN_MOVE, "a: GET z@0b",
        "y: CLUSTER SETSLOT $slot0b STABLE", "z: CLUSTER SETSLOT $slot0b STABLE", "a: GET z@0b ; GET x@0b",
        "connect b 1", "b: ASKING ; GET x@0b"],
    "what setslot refuses": [
        "connect a 0", "connect b 1", "connect r 3", "a: SET x@0b 1",
        "a: CLUSTER SETSLOT $slot0b NODE $id1", "a: CLUSTER SETSLOT $slot0b IMPORTING $id1",
        "b: CLUSTER SETSLOT $slot0b MIGRATING $id1", "a: CLUSTER SETSLOT $slot0b MIGRATING abc",
        "a: CLUSTER SETSLOT $slot0b MIGRATING $id3", "r: CLUSTER SETSLOT $slot0b STABLE",
        "a: CLUSTER SETSLOT x STABLE", "a: CLUSTER SETSLOT $slot0b AWAY", "a: CLUSTER SETSLOT 16384 STABLE",
        "a: CLUSTER SETSLOT $slot0b NODE abc"],
    "what migrate refuses": [
        "connect a 0", "connect b 1", "a: SET x@0b 1 ; SET y@0b 1", *BEGIN_MOVE,
        "b: ASKING ; SET x@0b 2", migrate("x"), "a: GET x@0b",
        "y: MIGRATE $addr1 '' 0 60000 REPLACE KEYS x@0b", "b: ASKING ; GET x@0b",
        "y: MIGRATE $addr1 y@0b 0 60000 COPY", "a: GET y@0b", "b: ASKING ; GET y@0b"],
    "a slot that is taken": [
        "connect a 0 3", "connect w 0", "connect q 0 3", "connect z 1", "connect r 3 3", "w: SET x@0b 1 ; SET x@0 1",
        "sync", "a: CLIENT TRACKING ON ; GET x@0b ; GET x@0", "q: CLIENT TRACKING ON BCAST",
        "w: WATCH x@0b", "r: READONLY ; CLIENT TRACKING ON ; GET x@0b",
        "z: CLUSTER SETSLOT $slot0b IMPORTING $id0", "z: CLUSTER SETSLOT $slot0b NODE $id1", "agree", "sync",
        "w: DBSIZE ; MULTI ; PING ; EXEC", "a: GET x@0b ; GET x@0", "r: DBSIZE ; GET x@0b ; GET x@0",
        "z: GET x@0b"],
    "a slot of nobody": [
        "connect a 0", "connect b 1", "a: SET x@0 1", "a: CLUSTER DELSLOTS $slot0b",
        "a: GET x@0b ; SET x@0b 1", "a: GET x@0 ; PING ; MULTI ; EXEC ; DBSIZE", "a: WATCH x@0",
        "a: MGET x@0 x@0b", "a: CLUSTER ADDSLOTS $slot0b", "a: GET x@0 ; GET x@0b", "b: GET x@0b"],
}

DATA = {
    "strings": [
        "connect a 0", "connect b 0 3", "a: SET x@0 10 ; INCR x@0 ; DECRBY x@0 5 ; APPEND x@0 ab",
        "b: GET x@0 ; INCR x@0 ; STRLEN x@0 ; GETRANGE x@0 1 2", "a: GETSET x@0 new ; GETDEL x@0 ; GET x@0",
        "b: GET x@0 ; SETNX x@0 1 ; SETNX x@0 2 ; SET x@0 3 NX ; SET x@0 3 XX GET ; TYPE x@0",
        "b: MSETNX x@0 1 z@0 2 ; MSETNX z@0 1 v@0 2 ; MGET x@0 z@0 v@0", "a: RENAME z@0 w@0 ; RENAME z@0 y@0",
        "a: COPY w@0 u@0 ; COPY w@0 u@0 ; GET u@0", "b: INCRBYFLOAT x@0 0.5 ; OBJECT ENCODING x@0"],
    "keys of several slots together": [
        "connect a 0", "connect b 0 3", "b: CLIENT TRACKING ON", "a: SET x@0 1 ; SET x@0b 2 PXAT 4102444800000",
        "b: MGET x@0 x@0b y@0b", "a: RENAME x@0b y@0", "b: MGET x@0b y@0", "a: PEXPIRETIME y@0 ; RENAMENX y@0 x@0",
        "a: COPY y@0 x@0b ; MGET x@0b y@0 ; MSETNX v@0 1 w@0b 2 ; MSETNX w@0b 1 u@0 2 ; MGET v@0 w@0b u@0",
        "a: LCS v@0 w@0b ; WATCH x@0 x@0b ; MULTI ; RENAME x@0 x@0b ; EXEC ; DBSIZE", "b: DEL x@0 x@0b"],
    "what came later": [
        "connect a 0", "a: HEAT TOP ; HOTKEYS GET ; CLIENT NO-TOUCH ON ; CLUSTER MYSHARDID",
        "a: CLIENT SETINFO LIB-NAME x ; CLUSTER SLOT-STATS SLOTSRANGE 0 1 ; CLIENT NO-EVICT ON"],
    "errors": [
        "connect a 0", "connect b 0 3", "a: GET ; GET x@0 y@0 ; NOSUCH x y ; CLIENT NOSUCH ; CLIENT",
        "b: SET x@0 1 EX 0 ; SET x@0 1 EX x ; INCRBY x@0 x ; EXPIRE x@0 1 NX XX ; CLUSTER NOSUCH",
        "a: EXEC ; DISCARD ; SELECT 1 ; SELECT 0 ; CLIENT CACHING YES ; AUTH x ; HELLO 4 ; HELLO x",
        "b: CLIENT SETNAME 'a_b ; CLIENT SETNAME ok ; CLIENT GETNAME ; CLIENT TRACKING MAYBE",
        "b: RESTORE x@0 0 abc ; RESTORE x@0 -1 abc ; WATCH ; HELLO 3 SETNAME"],
    "times to live": [
        "connect a 0", "a: SET x@0 1 PXAT 4102444800000 ; PEXPIRETIME x@0 ; EXPIRETIME x@0 ; PERSIST x@0",
        "a: TTL x@0 ; TTL y@0 ; PEXPIREAT x@0 4102444800000 ; SET x@0 2 KEEPTTL ; PEXPIRETIME x@0",
        "a: SET x@0 3 ; PTTL x@0 ; PEXPIREAT x@0 1 ; EXISTS x@0", "a: SET x@0 1 PX 1 ; SET y@0 1",
        "pass 5", "a: GET x@0 ; PTTL x@0 ; EXISTS x@0 y@0 ; DBSIZE ; SETNX x@0 2 ; GET x@0"],
    "expired keys at a replica": [
        "connect a 0", "connect r 3", "r: READONLY", "a: SET x@0 1 PX 1 ; SET y@0 1", "sync", "pass 5",
        "r: GET x@0 ; EXISTS x@0 ; PTTL x@0 ; DBSIZE", "a: DBSIZE", "a: GET x@0", "sync", "r: DBSIZE"],
    "expired keys on the move": [
        "connect a 0", "connect b 1", "a: SET x@0b 1 PX 1 ; SET y@0b 1", "pass 5", *BEGIN_MOVE,
        "a: GET x@0b", migrate("x"), "a: MGET x@0b y@0b"],
    "dump and restore": [
        "connect a 0", "connect b 1", "a: DUMP x@0 ; DUMP x@1", "a: RESTORE x@0 0 rubbish",
        "a: EXISTS x@0"],
    "keys of a slot": [
        "connect a 0", "a: SET x@0b 1", "a: CLUSTER COUNTKEYSINSLOT x ; CLUSTER COUNTKEYSINSLOT 99999",
        "a: CLUSTER GETKEYSINSLOT x 1 ; CLUSTER GETKEYSINSLOT 99999 1 ; CLUSTER GETKEYSINSLOT $slot0b 5",
        "a: CLUSTER COUNTKEYSINSLOT $slot0b ; CLUSTER COUNTKEYSINSLOT $slot0"],
    "flushes": [
        "connect a 0", "connect b 1", "connect r 3", "a: SET x@0 1", "b: SET x@1 1", "a: FLUSHALL",
        "a: DBSIZE", "b: DBSIZE ; FLUSHALL ASYNC ; DBSIZE ; FLUSHALL NOW", "sync", "r: DBSIZE"],
    "hello and reset": [
        "connect a 0", "a: HELLO", "a: HELLO 3", "a: GET x@0 ; HELLO 2 ; GET x@0", "a: HELLO 3 SETNAME joe",
        "a: CLIENT GETNAME ; MULTI ; SET x@0 1 ; RESET ; GET x@0 ; CLIENT GETNAME ; EXEC"],
    "quit": ["connect a 0", "connect b 0 3", "a: SET x@0 1 ; QUIT ; SET x@0 2", "b: GET x@0"],
    "client reply": [
        "connect a 0", "a: CLIENT REPLY SKIP ; SET x@0 1 ; GET x@0",
        "a: CLIENT REPLY OFF ; SET x@0 2 ; CLIENT REPLY ON ; GET x@0"],
    "inline and nonsense": ["connect a 0", "connect b 0", "a: GET x@0", "close a", "b: PING"],
    "kill": [
        "connect a 0", "connect b 0", "b: CLIENT KILL ID $client_a", "b: CLIENT KILL ID $client_a"],
    "stalled": [
        "connect a 0", "a: SET x@0 1", "stall 0", "a~ GET x@0 ; INCR x@0", "thaw 0", "a? 2"],
}

TRANSACTIONS = {
    "exec": [
        "connect a 0", "connect b 0 3", "a: MULTI ; SET x@0 1 ; INCR x@0 ; GET x@0 ; EXEC",
        "b: MULTI ; INCR x@0 ; INCRBY x@0 x ; APPEND x@0 y ; INCR x@0 ; GET z@0 ; EXEC",
        "a: MULTI ; EXEC", "a: MULTI ; MULTI ; WATCH x@0 ; SET x@0 1 ; EXEC", "a: MULTI ; SET x@0 2 ; DISCARD",
        "a: GET x@0"],
    "refused while queueing": [
        "connect a 0", "a: MULTI ; SET x@0 1 ; GET ; GET x@0 ; EXEC", "a: MULTI ; NOSUCH ; EXEC",
        "a: MULTI ; SET x@0 1 ; GET x@1 ; EXEC", "a: MULTI ; SET x@0 1 ; MGET x@0 x@0b ; EXEC",
        "a: MULTI ; SET x@0 1 ; GET x@0b ; EXEC", "a: GET x@0", "a: MULTI ; GET x@1", "a: DISCARD",
        "a: MULTI ; GET x@1 ; DISCARD ; MULTI ; GET x@0 ; EXEC"],
    "watch": [
        "connect a 0", "connect b 0", "a: WATCH x@0 ; MULTI ; GET x@0", "b: SET x@0 1", "a: EXEC",
        "a: WATCH x@0 ; SET x@0 2 ; MULTI ; GET x@0 ; EXEC", "a: WATCH x@0 ; MULTI ; SET x@0 3 ; EXEC",
        "a: WATCH x@0 ; UNWATCH ; MULTI", "b: INCR x@0", "a: GET x@0 ; EXEC",
        "a: WATCH x@0 y@0 ; MULTI", "b: SET z@0 1", "a: GET x@0 ; EXEC",
        "a: WATCH x@0 ; MULTI ; DISCARD ; SET x@0 9 ; MULTI ; GET x@0 ; EXEC"],
    "queued behind a change": [
        "connect a 0", "connect b 0", "a: WATCH x@0 ; MULTI ; GET x@0", "b: SET x@0 1", "a: GET x@0b ; EXEC",
        "a: WATCH x@0 ; MULTI", "a: GET x@0", "a: GET x@0b ; EXEC"],
    "watch and time": [
        "connect a 0", "connect b 0", "a: SET x@0 1 PX 1 ; WATCH x@0 ; MULTI ; PING", "pass 5", "a: EXEC",
        "a: SET x@0 1 PX 1", "pass 5", "a: WATCH x@0 ; MULTI ; PING", "b: GET x@0", "a: EXEC",
        "a: SET x@0 1 PX 1", "pass 5", "a: WATCH x@0 ; MULTI ; PING", "b: SET x@0 2", "a: EXEC"],
    "watch and flush": [
        "connect a 0", "connect b 0", "connect c 0", "a: SET x@0 1", "a: WATCH x@0 ; MULTI ; PING",
        "c: WATCH y@0 ; MULTI ; PING", "b: FLUSHALL", "a: EXEC", "c: EXEC"],
    "watch and move": [
        "connect a 0", "connect b 1", "a: SET x@0b 1 ; SET y@0b 1", *BEGIN_MOVE,
        "a: WATCH x@0b", "b: ASKING ; WATCH x@0b", "b: MULTI ; PING", "a: MULTI ; PING", migrate("x"),
        "a: EXEC", "b: EXEC", "a: WATCH y@0b ; MULTI ; PING", migrate("y"), *END_MOVE, "a: EXEC"],
    "a replica's transactions": [
        "connect a 0", "connect r 3", "r: READONLY", "r: WATCH x@0 ; MULTI ; GET x@0", "a: SET x@0 1", "sync",
        "r: EXEC", "r: MULTI ; GET x@0 ; EXEC", "r: MULTI ; FLUSHALL ; EXEC"],
}

TRACKING = {
    "default": [
        "connect a 0 3", "connect b 0", "a: CLIENT TRACKING ON ; GET x@0 ; MGET y@0 z@0",
        "b: SET x@0 1", "b: SET x@0 2", "b: MSET z@0 1 y@0 2 x@0 3", "a: GET x@0", "b: DEL x@0 ; DEL x@0",
        "a: EXISTS x@0 ; TTL y@0", "b: SET x@0 1 ; PEXPIREAT y@0 4102444800000", "a: CLIENT TRACKING OFF",
        "a: GET x@0", "b: SET x@0 2"],
    "own changes": [
        "connect a 0 3", "a: CLIENT TRACKING ON ; GET x@0 ; SET x@0 1 ; SET x@0 2 ; GET x@0 ; INCR x@0",
        "a: GET x@0 ; MULTI ; SET x@0 1 ; GET x@0 ; SET x@0 2 ; EXEC", "a: GET x@0 ; GET y@0 ; DEL x@0 y@0",
        "a: GET x@0 ; RENAME x@0 y@0", "a: SET x@0 1 ; GET x@0 ; GET y@0 ; RENAME x@0 y@0"],
    "noloop": [
        "connect a 0 3", "connect b 0", "a: CLIENT TRACKING ON NOLOOP ; GET x@0 ; SET x@0 1", "b: SET x@0 2",
        "a: GET x@0", "b: SET x@0 3", "a: GET x@0 ; FLUSHALL"],
    "optin": [
        "connect a 0 3", "connect b 0", "a: CLIENT TRACKING ON OPTIN ; GET x@0", "b: SET x@0 1",
        "a: CLIENT CACHING YES ; GET x@0 ; GET y@0", "b: SET x@0 2 ; SET y@0 2",
        "a: CLIENT CACHING YES ; MULTI ; GET x@0 ; GET y@0 ; EXEC", "b: SET x@0 3 ; SET y@0 3",
        "a: CLIENT CACHING YES ; MULTI ; EXISTS x@0 ; SET x@0 1 ; EXISTS x@0 ; EXEC ; PING",
        "b: SET x@0 3", "a: CLIENT CACHING YES ; CLIENT GETNAME ; GET x@0", "b: SET x@0 4",
        "a: CLIENT CACHING YES ; PTTL x@0 ; CLIENT CACHING YES ; GET x@0", "b: PERSIST x@0 ; APPEND x@0 a",
        "a: CLIENT CACHING YES ; GETX ; GET x@0", "b: SET x@0 5", "a: CLIENT CACHING NO ; CLIENT CACHING MAYBE"],
    "optout": [
        "connect a 0 3", "connect b 0", "a: CLIENT TRACKING ON OPTOUT ; GET x@0", "b: SET x@0 1",
        "a: CLIENT CACHING NO ; GET x@0 ; GET y@0", "b: SET x@0 2 ; SET y@0 2", "a: CLIENT CACHING YES"],
    "broadcast": [
        "connect a 0 3", "connect b 0", "connect c 0 3", "a: CLIENT TRACKING ON BCAST",
        "c: CLIENT TRACKING ON BCAST PREFIX x PREFIX y", "b: SET z@0 1 ; SET x@0 1 ; SET y@0 2 ; SET x@0 3",
        "a: SET x@0 1 ; GET x@0 ; SET x@0 2", "b: MULTI ; SET x@0 1 ; DEL y@0 ; EXEC", "b: FLUSHALL",
        "c: CLIENT TRACKING OFF", "b: SET x@0 1"],
    "broadcast noloop": [
        "connect a 0 3", "connect b 0", "a: CLIENT TRACKING ON BCAST NOLOOP", "a: SET x@0 1",
        "a: SET x@0 2 ; SET y@0 2", "b: SET x@0 1 ; SET y@0 1"],
    "modes that do not fit": [
        "connect a 0 3", "a: CLIENT TRACKING ON ; CLIENT TRACKING ON BCAST ; CLIENT TRACKING ON OPTIN OPTOUT",
        "a: CLIENT TRACKING ON OPTIN ; CLIENT TRACKING ON OPTOUT ; CLIENT TRACKING ON PREFIX a",
        "a: CLIENT TRACKING OFF ; CLIENT TRACKING ON BCAST PREFIX a PREFIX ab ; CLIENT TRACKING ON BCAST OPTIN",
        "a: CLIENT TRACKING ON BCAST PREFIX a ; CLIENT TRACKING ON BCAST PREFIX ab ; CLIENT TRACKINGINFO",
        "a: CLIENT TRACKING ON REDIRECT 99999999 ; CLIENT GETREDIR ; CLIENT TRACKING OFF ; CLIENT GETREDIR"],
    "on and off": [
        "connect a 0 3", "connect b 0", "a: CLIENT TRACKING ON ; GET x@0 ; GET y@0 ; CLIENT TRACKING OFF",
        "b: SET x@0 1", "a: CLIENT TRACKING ON", "b: SET x@0 2 ; SET y@0 2",
        "a: GET x@0 ; RESET ; HELLO 3", "b: SET x@0 1"],
    "in RESP2": ["connect a 0", "connect b 0", "a: CLIENT TRACKING ON ; GET x@0", "b: SET x@0 1",
                 "a: GET x@0 ; HELLO 3", "b: SET x@0 1"],
    "redirected": [
        "connect a 0", "connect b 0 3", "connect c 0", "a: CLIENT TRACKING ON REDIRECT $client_b ; GET x@0",
        "c: SET x@0 1", "a: GET x@0 ; SET x@0 2", "c: SET x@0 3", "a: GET x@0 ; CLIENT TRACKINGINFO", "c: FLUSHALL",
        "connect d 0", "d: SUBSCRIBE __redis__:invalidate",
        "a: CLIENT TRACKING OFF ; CLIENT TRACKING ON REDIRECT $client_d ; GET x@0",
        "c: SET x@0 1", "close d", "a: GET x@0", "c: SET x@0 1", "a: CLIENT TRACKINGINFO"],
    "flush": [
        "connect a 0 3", "connect b 0", "connect c 0 3", "a: CLIENT TRACKING ON ; GET x@0 ; GET y@0",
        "c: CLIENT TRACKING ON OPTIN", "b: FLUSHALL", "b: SET x@0 1", "a: GET x@0 ; FLUSHALL ; GET x@0",
        "b: MULTI ; SET x@0 1 ; FLUSHALL ; EXEC", "a: MULTI ; SET x@0 1 ; FLUSHALL ; SET x@0 2 ; EXEC"],
    "expiry": [
        "connect a 0 3", "connect b 0", "a: CLIENT TRACKING ON ; MULTI ; SET x@0 1 PX 1 ; GET x@0 ; EXEC",
        "pass 5", "b: GET x@0", "a: MULTI ; SET x@0 1 PX 1 ; GET x@0 ; EXEC", "pass 5", "a: GET x@0",
        "a: MULTI ; SET x@0 1 PX 1 ; SET y@0 1 PX 1 ; MGET x@0 y@0 ; EXEC", "pass 5", "b: MSET y@0 1 x@0 2",
        "a: GET x@0", "b: PEXPIREAT x@0 1", "a: GET x@0 ; SET x@0 1 ; GET x@0 ; PEXPIREAT x@0 1 ; GET x@0"],
    "expiry while a slot moves": [
        "connect a 0 3", "connect b 0",
        "a: CLIENT TRACKING ON ; MULTI ; SET x@0b 1 PX 1 ; GET x@0b ; EXEC", *BEGIN_MOVE, "pass 5", "a: GET x@0b", "a: GET x@0", "b: GET x@0b"],
    "a key that moves": [
        "connect a 0 3", "connect b 1 3", "connect c 1", "a: SET x@0b 1 ; SET y@0b 1", *BEGIN_MOVE,
        "a: CLIENT TRACKING ON ; GET x@0b ; GET y@0b", "b: CLIENT TRACKING ON ; ASKING ; GET x@0b",
        migrate("x"), "c: ASKING ; SET x@0b 2", "b: ASKING ; GET x@0b", "c: ASKING ; SET x@0b 3", "a: GET x@0b",
        migrate("y"), *END_MOVE, "b: GET x@0b ; GET y@0b", "c: SET x@0b 5 ; SET y@0b 6"],
    "at a replica": [
        "connect a 0", "connect r 3 3", "connect q 3 3", "r: READONLY ; CLIENT TRACKING ON ; GET x@0 ; GET y@0",
        "q: CLIENT TRACKING ON BCAST", "a: SET x@0 1", "sync", "r: GET x@0", "a: FLUSHALL", "sync",
        "a: SET x@0 1 PX 1", "sync", "pass 5", "r: GET x@0", "a: GET x@0", "sync",
        "r: GET x@0 ; GET y@0", "a: MULTI ; SET y@0 1 ; SET x@0 1 ; EXEC", "sync"],
}

CHANNELS = {
    "channels": [
        "connect a 0 3", "connect b 0", "connect c 1 3", "a: SUBSCRIBE x y x ; PSUBSCRIBE x*", "c: SUBSCRIBE u",
        "b: PUBLISH x one ; PUBLISH z two ; PUBLISH y three", "a: PUBLISH x own",
        "a: UNSUBSCRIBE x ; UNSUBSCRIBE nothing ; PUNSUBSCRIBE", "b: PUBLISH x four", "a: UNSUBSCRIBE",
        "a: UNSUBSCRIBE", "a~ PUBLISH u five ; PUBLISH v six ; PUBLISH u seven", "a? 3", "c> 2"],
    "channels in RESP2": [
        "connect a 0", "connect b 0", "a: SUBSCRIBE x", "a: GET x@0 ; CLIENT ID", "b: PUBLISH x one",
        "a: PSUBSCRIBE y*", "b: PUBLISH y1 two", "a: UNSUBSCRIBE x ; PUNSUBSCRIBE y*", "a: GET x@0",
        "a: SUBSCRIBE x ; RESET ; GET x@0"],
    # Only r uses its channel: messages reach a replica with a delay, possibly after its SSUBSCRIBE.
    "shard channels": [
        "connect a 0 3", "connect b 0", "connect c 1", "connect r 3 3", "a: SSUBSCRIBE x@0 ; SSUBSCRIBE x@1",
        "b: SPUBLISH x@0 one", "c: SPUBLISH x@0 two ; SSUBSCRIBE x@0",
        "a: SSUBSCRIBE x@0 x@0b", "a: SUNSUBSCRIBE x@0 ; SUNSUBSCRIBE", "b: SPUBLISH x@0 three",
        "r: SSUBSCRIBE x@0b", "b~ SPUBLISH x@0b four", "b? 1", "r> 1"],
    "a shard channel that moves": [
        "connect a 0 3", "connect b 1", "connect c 0", "a: SSUBSCRIBE x@0b ; SSUBSCRIBE x@0", *BEGIN_MOVE,
        "c: SPUBLISH x@0b one", "b: SPUBLISH x@0b two", "b: ASKING ; SPUBLISH x@0b two", *END_MOVE,
        "c: SPUBLISH x@0b three", "b: SPUBLISH x@0b four", "a: SUNSUBSCRIBE x@0b"],
    "in a transaction": [
        "connect a 0 3", "connect b 0", "a: SUBSCRIBE x ; MULTI ; PUBLISH x one ; SUBSCRIBE y ; EXEC",
        "b: MULTI ; PUBLISH x two ; SPUBLISH x@0 three ; EXEC", "b: MULTI ; SSUBSCRIBE x@0 ; EXEC"],
}

WAITS = {
    "wait": [
        "connect a 0", "connect r 3", "a: SET x@0 1", "sync", "a: WAIT 1 5000 ; WAIT x 0 ; WAIT 1 -1",
        "r: WAIT 0 0"],
    "blpop": [
        "connect a 0 3", "connect b 0", "a: BLPOP x@0 0.001", "b: BLPOP x@0 -1 ; BLPOP x@0 y",
        "b: SET x@0 1 ; BLPOP x@0 0", "b: DEL x@0 ; MULTI ; BLPOP x@0 0 ; EXEC", "a~ BLPOP x@0 y@0 0 ; PING",
        "blocked a", "b: CLIENT UNBLOCK $client_a ; CLIENT UNBLOCK $client_b", "a? 2", "a~ BLPOP x@0 0",
        "blocked a", "b: CLIENT UNBLOCK $client_a ERROR", "a? 1"],
    "blpop served": [
        "connect a 0 3", "connect b 0", "connect c 0", "a~ BLPOP x@0 0", "blocked a", "c~ BLPOP y@0 x@0 0",
        "blocked c", "b: RPUSH x@0 1", "a? 1", "b: MULTI ; RPUSH x@0 2 ; RPUSH x@0 3 ; EXEC", "c? 1",
        "b: BLPOP x@0 0 ; BLPOP x@0 0.001 ; EXISTS x@0 ; SET x@0 1 ; RPUSH x@0 1"],
    "blpop of a slot that moves": [
        "connect a 0", "connect b 0", "connect c 1", "connect d 1", "a~ BLPOP x@0 0", "blocked a",
        "c: CLUSTER SETSLOT $slot0 IMPORTING $id0", "b: CLUSTER SETSLOT $slot0 MIGRATING $id1",
        "b: RPUSH x@0 1 ; BLPOP x@0 0", "c~ ASKING ; BLPOP x@0 0", "blocked c", "d: ASKING ; RPUSH x@0 1 2", "c? 2",
        "c: CLUSTER SETSLOT $slot0 NODE $id1", "b: CLUSTER SETSLOT $slot0 NODE $id1", "agree", "a? 1",
        "d: BLPOP x@0 0 ; EXISTS x@0"],
    "blpop elsewhere": ["connect a 0", "connect b 1", "a: BLPOP x@1 0 ; BLPOP x@0 x@0b 0"],
}

# Each replica takes over once only: see Real.failover.
FAILOVERS = {
    "failover": [
        "connect a 0 3", "connect w 0", "connect l 0", "connect r 3 3", "connect q 3 3", "connect o 1",
        "w: SET x@0 1 ; SET y@0 2", "sync", "a: CLIENT TRACKING ON ; GET x@0", "w: WATCH x@0",
        "q: READONLY ; CLIENT TRACKING ON ; GET x@0", "l~ BLPOP z@0 0", "blocked l",
        "failover 3", "agree", "l? 1", "w: MULTI ; PING ; EXEC ; WATCH x@0", "o: GET x@0",
        "r: SET x@0 1", "sync", "a: GET x@0 ; READONLY ; GET x@0 ; SET x@0 9", "r: SET x@0 2", "sync",
        "q: GET y@0", "w: MULTI ; GET x@0 ; EXEC ; READONLY ; MULTI ; GET x@0 ; EXEC"],
    "failover and back": [
        "connect a 1", "connect r 4", "a: SET x@1 1 ; SET y@1 2", "failover 4", "agree",
        "a: GET x@1 ; SET x@1 2 ; READONLY ; GET x@1 ; SET x@1 3", "r: GET x@1 ; SET x@1 2 ; INCR y@1",
        "sync", "a: MGET x@1 y@1", "failover 1", "agree", "a: INCR x@1 ; GET y@1", "r: GET x@1",
        "r: CLUSTER FAILOVER SOON", "a: CLUSTER FAILOVER"],
}

GROUPS = {"routes": ROUTES, "data": DATA, "transactions": TRANSACTIONS, "tracking": TRACKING,
          "channels": CHANNELS, "waits": WAITS, "failovers": FAILOVERS}
