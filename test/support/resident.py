"""Runs a script again and again, each time in a fork of this process, which has loaded what the script imports."""
import json
import os
import sys
import traceback

path = sys.argv[1]
with open(path, encoding="utf-8") as file:
    code = compile(file.read(), path, "exec")
exec(code, {"__name__": "loaded"})


def run(arguments):
    sys.argv = [path, *arguments]
    try:
        exec(code, {"__name__": "__main__", "__file__": path})
        return 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


for line in sys.stdin:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(write, 1)
        os.dup2(write, 2)
        os._exit(run(json.loads(line)))
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as output:
        text = output.read()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text]), flush=True)
