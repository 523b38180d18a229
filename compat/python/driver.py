"""The Python clients of the compatibility suite, driven by lines of JSON: driver.py confluent, driver.py pure, driver.py aio.

The protocol is that of ../java/Driver.java: one request a line on standard input, each run in a thread of its own,
answered by lines {"id", "progress"} and one {"id", "ok"} or {"id", "error", "message"} on standard output.

An adapter is a module with OPERATIONS (functions of a Call by the name of the operation), read_in_group(args, member), and
error_name(exception), which is Kafka's name of an error, or nothing.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import threading

from lines import Call, Member, write

stopped = {}


def member(adapter, call):
    if call.args.get("die"):
        return dying_member(adapter, call)
    m = Member(call.args, call.stop, call.progress)
    adapter.read_in_group(call.args, m)
    return m.records


def dying_member(adapter, call):
    """A member in a process of its own, which is killed when it has read enough."""
    child = subprocess.run([sys.executable, __file__, adapter.__name__, "member"], input=json.dumps(call.args), capture_output=True, text=True, check=False)
    if child.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the member ended with {child.returncode}: {child.stderr[-500:]}")
    return json.loads(child.stdout)


def dying_member_main(adapter):
    def die(records):
        print(json.dumps(records), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    args = json.loads(sys.stdin.readline())
    m = Member(args, threading.Event(), lambda n: None, die)
    adapter.read_in_group(args, m)
    raise RuntimeError(f"still alive after {len(m.records)} records")


def run(adapter, call):
    op = call.args["op"]
    try:
        answer = {"id": call.id, "ok": member(adapter, call) if op == "member" else adapter.OPERATIONS[op](call)}
    except Exception as e:  # whatever it is, the other side must be told
        answer = {"id": call.id, "error": adapter.error_name(e), "message": repr(e)}
    stopped.pop(call.id, None)
    write(answer)


def main(adapter):
    for line in sys.stdin:
        args = json.loads(line)
        if args["op"] == "stop":
            stopped.setdefault(args["target"], threading.Event()).set()
            continue
        call = Call(args, stopped.setdefault(args["id"], threading.Event()))
        threading.Thread(target=run, args=(adapter, call), daemon=True).start()


if __name__ == "__main__":
    arguments = sys.argv[1:] or ["confluent"]
    chosen = importlib.import_module(arguments[0])
    dying_member_main(chosen) if arguments[1:] == ["member"] else main(chosen)
