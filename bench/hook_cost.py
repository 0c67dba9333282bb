"""What the hooks cost: a lane with them over the same lane without, on a random Llama.

One engine, one process. Lanes alternate between recording and not recording, so that a slow
moment of the machine meets both; the ratio of the two medians is printed. What stays in place
while nothing is recorded are the wrappers themselves, one call each.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
VOCABULARY = 32_000
LIMIT = 1.10


def make_model(folder: Path) -> int:
    """A Llama of random weights, fixed seed, and a tokenizer of words; returns its parameters."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=768, intermediate_size=2048, num_hidden_layers=12,
        num_attention_heads=12, num_key_value_heads=12, max_position_embeddings=1024,
        tie_word_embeddings=True))
    model.save_pretrained(folder)
    words = {f"w{number}": number for number in range(VOCABULARY - 1)} | {"</s>": VOCABULARY - 1}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>").save_pretrained(folder)
    return sum(parameter.numel() for parameter in model.parameters())


def measure(folder: Path, model: Path, prompt: int, new: int, rounds: int) -> tuple[
        list[float], list[float], int]:
    """Seconds of each run with and without recording, and bytes written for one with."""
    from vcachediag.engine import arguments
    from vcachediag.engine.configuration import configure
    from vcachediag.engine.observer import Observer
    from vcachediag.engine.session import InProcessSession
    from vcachediag.requests import Request
    from vcachediag.trace.records import SCHEMA_VERSION, Header
    from vcachediag.trace.writer import EventWriter, create_trace

    generator = random.Random(0)
    request = Request(
        id="r", source="bench:1", max_tokens=new, sampling={"ignore_eos": True},
        prompt_token_ids=tuple(generator.randrange(VOCABULARY - 1) for _ in range(prompt)))
    create_trace(folder, Header(schema=SCHEMA_VERSION, tool="bench", started="", argv=(),
                                request_file=""))
    configured = configure(arguments.parse((
        str(model), "--dtype", "float32", "--block-size", "32", "--max-model-len", "1024",
        "--gpu-memory-utilization", "0.2")), (request,), new)
    with EventWriter(folder, "bench") as writer:
        observer = Observer(writer.event)
        observer.install()
        session = InProcessSession(configured, observer, writer.event, new)
        times: dict[bool, list[float]] = {True: [], False: []}
        for number in range(-2, 2 * rounds):
            # A, B, B, A, ...: neither is always first.
            watch = number % 4 in (0, 3)
            observer.record(watch)
            session.empty(("prefix", "encoder", "processor"))
            started = time.perf_counter()
            session.run(request, f"reference/r{number}", reads_prefix_cache=False)
            if number >= 0:
                times[watch].append(time.perf_counter() - started)
        size = sum(path.stat().st_size for path in (folder / "events").iterdir())
    return times[True], times[False], size // len(times[True])


def main() -> None:
    """Measure and print; exit 1 above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompt", type=int, default=512, help="prompt tokens")
    parser.add_argument("--new", type=int, default=64, help="new tokens")
    parser.add_argument("--rounds", type=int, default=8, help="runs with and without, each")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        model = Path(name) / "model"
        parameters = make_model(model)
        watched, bare, size = measure(Path(name) / "trace", model, options.prompt, options.new,
                                      options.rounds)
    ratio = statistics.median(watched) / statistics.median(bare)
    print(f"{parameters / 1e6:.0f}M parameters, {options.prompt} prompt tokens, {options.new} new, "
          f"{options.rounds} runs each")
    for name, seconds in (("with hooks", watched), ("without", bare)):
        print(f"{name:11} median {statistics.median(seconds):.3f} s, "
              f"{min(seconds):.3f} to {max(seconds):.3f}")
    print(f"ratio of the medians {ratio:.3f} (limit {LIMIT:.2f}), of the fastest "
          f"{min(watched) / min(bare):.3f}; {size / 1e3:.0f} kB of records a run")
    sys.stdout.flush()
    os._exit(int(ratio > LIMIT))


if __name__ == "__main__":
    main()
