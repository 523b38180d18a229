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


def operate(adapter, call):
    if call.args["op"] != "member":
        return adapter.OPERATIONS[call.args["op"]](call)
    m = Member(call.args, call.stop, call.progress, call.die)
    adapter.read_in_group(call.args, m)
    return m.records


def dying(adapter, call):
    """An operation in a process of its own, which is killed when it has done enough."""
    child = subprocess.run([sys.executable, __file__, adapter.__name__, "dying"], input=json.dumps(call.args), capture_output=True, text=True, check=False)
    if child.returncode != -signal.SIGKILL:
        raise RuntimeError(f"what was to die ended with {child.returncode}: {child.stderr[-500:]}")
    return json.loads(child.stdout)


def dying_main(adapter):
    def die(result):
        print(json.dumps(result), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    result = operate(adapter, Call(json.loads(sys.stdin.readline()), threading.Event(), die))
    raise RuntimeError(f"still alive after {result}")


def run(adapter, call):
    try:
        answer = {"id": call.id, "ok": dying(adapter, call) if call.args.get("die") else operate(adapter, call)}
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
    dying_main(chosen) if arguments[1:] == ["dying"] else main(chosen)
