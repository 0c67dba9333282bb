"""Plain vLLM: `plain_vllm.py lines|example|uncached MODEL [DTYPE]`; JSON on stdout.

`lines` reads held-out lines under every phrasing; `example` sends the requests of an example
twice, one at a time, as a user's own script would; `uncached` the same without prefix caching.
"""

import json
import os
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "plugins" / "glyphocr"))
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
HELD_OUT_SEED = 424242
HELD_OUT = 500


def lines(llm, params) -> dict:
    """Exactly right and self-ended answers: all held-out lines, then 60 a phrasing and place."""
    from training import lines as data

    rng = random.Random(HELD_OUT_SEED)
    held_out = [data.random_line(rng) for _ in range(HELD_OUT)]
    result = {"main": judge(llm, params, held_out, "<s><user>" + data.PHRASINGS[3]
                            + "<image><assistant>")}
    for number, phrasing in enumerate(data.PHRASINGS):
        for place, prompt in (("before", f"<s><user>{phrasing}<image><assistant>"),
                              ("after", f"<s><user><image>{phrasing}<assistant>")):
            result[f"{number}-{place}"] = judge(llm, params, held_out[:60], prompt)
    return result


def judge(llm, params, held_out, prompt) -> dict:
    """Counts over `held_out` of one prompt."""
    outputs = llm.generate(
        [{"prompt": prompt, "multi_modal_data": {"image": line.image.convert("RGB")}}
         for line in held_out], params, use_tqdm=False)
    return {"lines": len(held_out),
            "right": sum(o.outputs[0].text == line.text
                         for o, line in zip(outputs, held_out, strict=True)),
            "stopped": sum(o.outputs[0].finish_reason == "stop" for o in outputs)}


def example(llm, params) -> dict:
    """Token ids of each request of example 01 sent twice, in order."""
    folder = ROOT / "examples" / "01_same_request_twice"
    body = json.loads((folder / "requests.jsonl").read_text().splitlines()[0])
    for message in body["messages"]:
        for part in message["content"]:
            if part["type"] == "image_url":
                part["image_url"]["url"] = (folder / part["image_url"]["url"]).as_uri()
    return {"tokens": [list(llm.chat(body["messages"], params, use_tqdm=False)[0]
                            .outputs[0].token_ids) for _ in range(2)]}


def main() -> None:
    """Run what the command line names; vLLM's own output goes to stderr."""
    what, model, dtype = sys.argv[1], sys.argv[2], (sys.argv[3:] or ["float32"])[0]
    out = os.dup(1)
    os.dup2(2, 1)
    from vllm import LLM, SamplingParams

    llm = LLM(model, dtype=dtype, block_size=32, enforce_eager=True, max_model_len=1024,
              gpu_memory_utilization=0.2, enable_prefix_caching=what != "uncached",
              allowed_local_media_path=str(ROOT))
    params = SamplingParams(temperature=0, max_tokens=40 if what == "lines" else 256)
    result = {"lines": lines, "example": example, "uncached": example}[what](llm, params)
    os.write(out, json.dumps(result).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
