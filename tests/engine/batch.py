"""Several requests at once under our hooks: `batch.py FOLDER REQUESTS BLOCKS`; JSON on stdout.

Sends all requests of a file together, in an engine with few KV blocks, and then each one alone.
The trace of the former is in FOLDER.
"""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"


def run(session, observer, requests, lane) -> dict:
    """Output tokens and the highest logits of each request, all sent at once."""
    tokens = {f"{lane}/{request.id}": [] for request in requests}
    rows = {name: [] for name in tokens}
    engine = session._engine
    for request in requests:
        name = f"{lane}/{request.id}"
        prompt = session.prompts.render(request, max_tokens=40, run=name, reads_prefix_cache=False)
        engine.add_request(name, prompt.engine_input, prompt.params)
    while engine.has_unfinished_requests():
        for output in engine.step():
            name = next(each for each in tokens if output.request_id.startswith(each))
            tokens[name] += output.outputs[0].token_ids
            rows[name] += observer.take_rows(name)
    return {name: {"tokens": tokens[name], "top": [row.top_logits[0] for row in rows[name]],
                   "top_ids": [row.top_ids[0] for row in rows[name]]} for name in tokens}


def main() -> None:
    """Run what the command line names; vLLM's own output goes to stderr."""
    folder, file, blocks = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    out = os.dup(1)
    os.dup2(2, 1)
    from vcachediag.engine import arguments, plugin
    from vcachediag.engine.configuration import configure
    from vcachediag.engine.observer import Observer
    from vcachediag.engine.session import InProcessSession
    from vcachediag.requests import read_requests
    from vcachediag.trace.records import SCHEMA_VERSION, Header
    from vcachediag.trace.writer import EventWriter, create_trace

    plugin.export(("glyphocr",))
    requests = read_requests(file).requests
    create_trace(folder, Header(schema=SCHEMA_VERSION, tool="test", started="", argv=(),
                                request_file=str(file)))
    with EventWriter(folder, "engine") as writer:
        observer = Observer(writer.event)
        observer.install()
        configured = configure(arguments.parse((
            str(ROOT / "plugins" / "glyphocr" / "model"), "--dtype", "float32", "--block-size",
            "32", "--num-gpu-blocks-override", blocks, "--max-model-len", "256",
            "--gpu-memory-utilization", "0.2")), requests, 40)
        session = InProcessSession(configured, observer, writer.event, 40)
        result = run(session, observer, requests, "cached")
        for request in requests:
            result |= run(session, observer, [request], "reference")
    os.write(out, json.dumps(result).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
