"""Every outcome that is no verdict: its exit code, and what it says on stderr.

Each test runs the real command in a process of its own.
"""

import json
import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from vcachediag.errors import ExitCode

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "plugins" / "glyphocr" / "model"
IMAGE = ROOT / "examples" / "01_same_request_twice" / "images" / "invoice.png"
FLAGS = ("--block-size", "32", "--dtype", "float32", "--gpu-memory-utilization", "0.2")
REQUEST = {"prompt": "<image>Please read the text in this image.", "images": [str(IMAGE)],
           "max_tokens": 8}
SECONDS_TO_START = 60
KNOWN_ARCHITECTURE = "GlyphOCRForConditionalGeneration"

#: Works like glyphocr, and takes the whole process down at the fifth step with real input.
DYING_PLUGIN = f'''
import os

from glyphocr.modeling import GlyphOCRForConditionalGeneration
from vllm import ModelRegistry
from vllm.forward_context import get_forward_context


class Dying(GlyphOCRForConditionalGeneration):
    steps = 0

    def forward(self, *args, **kwargs):
        if get_forward_context().attn_metadata:
            Dying.steps += 1
            if Dying.steps == 5:
                os._exit(41)
        return super().forward(*args, **kwargs)


def register():
    from glyphocr import register

    register()
    ModelRegistry.register_model("{KNOWN_ARCHITECTURE}", Dying)
'''

#: A working class, under a name that the model's config.json does not use.
STRANGER_PLUGIN = '''
from vllm import ModelRegistry


def register():
    from glyphocr.modeling import GlyphOCRForConditionalGeneration

    class Stranger(GlyphOCRForConditionalGeneration):
        pass

    ModelRegistry.register_model("StrangerForCausalLM", Stranger)
'''


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "vcachediag", *arguments]


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "VLLM_CPU_KVCACHE_SPACE": "1"}


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(*arguments), cwd=folder, env=_environment(),
                          capture_output=True, text=True, check=False, timeout=240)


def _replay(folder: Path, *options: str, model: str = str(MODEL),
            flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Replay `requests.jsonl` of `folder`, in `folder`."""
    return _run(folder, "replay", "requests.jsonl", *options, "--", model, *FLAGS, *flags)


def _requests(folder: Path, *requests: dict[str, object]) -> None:
    text = "".join(json.dumps(request) + "\n" for request in requests or (REQUEST,))
    (folder / "requests.jsonl").write_text(text, encoding="utf-8")


def _fails(finished: subprocess.CompletedProcess[str], code: ExitCode, *lines: str) -> None:
    """Check that `finished` says exactly `lines` on stderr, nothing on stdout, and exits so."""
    assert list(lines) == finished.stderr.splitlines()
    assert "" == finished.stdout
    assert code == finished.returncode


def _footer(trace: Path) -> dict[str, object]:
    footer: dict[str, object] = json.loads((trace / "footer.json").read_bytes())
    return footer


def _png_header(width: int, height: int) -> bytes:
    """Return a PNG that claims a size and holds hardly any pixels."""
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
              (b"IDAT", zlib.compress(bytes(64))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks)


def test_missing_request_file(tmp_path: Path) -> None:
    """A request file that is not there is said to be that."""
    _fails(_replay(tmp_path), ExitCode.FILE,
           "error: requests.jsonl: cannot be read: no such file")


def test_empty_request_file(tmp_path: Path) -> None:
    """An empty request file is an error before any engine starts."""
    (tmp_path / "requests.jsonl").touch()

    _fails(_replay(tmp_path), ExitCode.FILE, "error: requests.jsonl: holds no request",
           "hint: one JSON object a line (JSONL), or one JSON array of objects")


def test_request_file_is_not_json(tmp_path: Path) -> None:
    """Text that is not JSON names the line."""
    (tmp_path / "requests.jsonl").write_text("Please read\n", encoding="utf-8")

    _fails(_replay(tmp_path), ExitCode.FILE,
           "error: requests.jsonl:1: not JSON: expecting value (column 1)",
           "hint: one JSON object a line (JSONL), or one JSON array of objects")


def test_unknown_field_has_a_suggestion(tmp_path: Path) -> None:
    """A mistyped field is refused with its line and the name that was meant."""
    _requests(tmp_path, REQUEST, {**REQUEST, "imges": []})

    _fails(_replay(tmp_path), ExitCode.FILE,
           "error: requests.jsonl:2: unknown field `imges` (did you mean `images`?)")


def test_missing_image(tmp_path: Path) -> None:
    """An image that is not there names line, field, reason, and where paths begin."""
    _requests(tmp_path, {**REQUEST, "images": ["nowhere.png"]})

    _fails(_replay(tmp_path), ExitCode.FILE,
           "error: requests.jsonl:1: `images[0]`: cannot read `nowhere.png`",
           "  caused by: no such file",
           "hint: paths are relative to the folder of the request file")


def test_image_is_no_picture(tmp_path: Path) -> None:
    """A file of another kind is refused as such."""
    (tmp_path / "text.png").write_text("not a picture", encoding="utf-8")
    _requests(tmp_path, {**REQUEST, "images": ["text.png"]})

    _fails(_replay(tmp_path), ExitCode.FILE,
           "error: requests.jsonl:1: `images[0]`: `text.png` is not a picture",
           "  caused by: its bytes are of no format that Pillow knows",
           "hint: PNG, JPEG, WEBP, TIFF and the like can be read")


def test_decompression_bomb(tmp_path: Path) -> None:
    """A picture that claims absurdly many pixels is refused before it is decoded."""
    (tmp_path / "bomb.png").write_bytes(_png_header(100_000, 100_000))
    _requests(tmp_path, {**REQUEST, "images": ["bomb.png"]})

    finished = _replay(tmp_path)

    error, cause, hint = finished.stderr.splitlines()
    assert "error: requests.jsonl:1: `images[0]`: `bomb.png` is too large" == error
    assert cause.startswith("  caused by: Image size (10000000000 pixels) exceeds limit of ")
    assert hint.startswith("hint: scale it down to ")
    assert "" == finished.stdout
    assert ExitCode.FILE == finished.returncode


def test_trace_folder_exists(tmp_path: Path) -> None:
    """`--out` never writes into a folder that holds something."""
    _requests(tmp_path)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "thesis.txt").write_text("mine", encoding="utf-8")

    _fails(_replay(tmp_path, "--out", "kept"), ExitCode.FILE,
           "error: kept exists already", "hint: name another, or add --force")
    assert ["thesis.txt"] == os.listdir(tmp_path / "kept")


def test_force_removes_only_traces(tmp_path: Path) -> None:
    """`--force` does not delete a folder that is no trace."""
    _requests(tmp_path)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "thesis.txt").write_text("mine", encoding="utf-8")

    _fails(_replay(tmp_path, "--out", "kept", "--force"), ExitCode.FILE,
           "error: kept exists and is not a trace", "hint: --force replaces only traces")
    assert ["thesis.txt"] == os.listdir(tmp_path / "kept")


def test_report_file_exists(tmp_path: Path) -> None:
    """`-o` does not replace a file."""
    _requests(tmp_path)
    (tmp_path / "report.txt").write_text("mine", encoding="utf-8")

    _fails(_replay(tmp_path, "-o", "report.txt"), ExitCode.FILE,
           "error: report.txt exists already", "hint: name another, or add --force")
    assert "mine" == (tmp_path / "report.txt").read_text(encoding="utf-8")


def test_folder_of_the_report_is_missing(tmp_path: Path) -> None:
    """`-o` into a folder that is not there fails at once, not after the recording."""
    _requests(tmp_path)

    _fails(_replay(tmp_path, "-o", "nowhere/report.txt"), ExitCode.FILE,
           "error: cannot write nowhere/report.txt", "  caused by: there is no folder nowhere")


def test_no_model(tmp_path: Path) -> None:
    """Without a model, the hint shows the whole form of the command."""
    _requests(tmp_path)

    _fails(_run(tmp_path, "replay", "requests.jsonl"), ExitCode.USAGE,
           "error: no model is named",
           "hint: vcachediag replay REQUESTS -- MODEL [vllm flags]")


def test_unknown_option(tmp_path: Path) -> None:
    """An option that is not ours points to the help."""
    finished = _run(tmp_path, "replay", "requests.jsonl", "--colour", "--", "model")

    error, hint = finished.stderr.splitlines()
    # Whether a similar option follows is up to the version of typer.
    assert error.startswith("error: No such option: --colour")
    assert "hint: vcachediag replay --help" == hint
    assert "" == finished.stdout
    assert ExitCode.USAGE == finished.returncode


@pytest.mark.engine
def test_plugin_is_not_installed(tmp_path: Path) -> None:
    """An unknown entry point lists those that are installed, and suggests the nearest."""
    _requests(tmp_path)

    finished = _replay(tmp_path, "--plugin", "glyphocrr", "--out", "trace")

    error, cause, *rest = finished.stderr.splitlines()
    assert "error: plugin `glyphocrr` is not installed" == error
    assert cause.startswith("  caused by: the entry points of vllm.general_plugins here: ")
    assert "`glyphocr`" in cause
    assert ["hint: did you mean `glyphocr`?", "what was recorded is kept in trace"] == rest
    assert "" == finished.stdout
    assert ExitCode.LOAD_FAILED == finished.returncode


@pytest.mark.engine
def test_plugin_misses_a_module(tmp_path: Path) -> None:
    """A plugin whose import fails for a missing package says what to install."""
    _requests(tmp_path)
    (tmp_path / "needy.py").write_text("import no_such_package.layers\n", encoding="utf-8")

    _fails(_replay(tmp_path, "--plugin", "needy.py", "--out", "trace"), ExitCode.LOAD_FAILED,
           "error: cannot load plugin `needy.py`",
           "  caused by: import needy.py raised ModuleNotFoundError: "
           "No module named 'no_such_package'",
           "hint: install it next to vLLM: `pip install no_such_package`",
           "what was recorded is kept in trace")


@pytest.mark.engine
def test_plugin_registers_nothing(tmp_path: Path) -> None:
    """A `register` function that registers no model is a mistake, not a success."""
    _requests(tmp_path)
    (tmp_path / "lazy.py").write_text("def register():\n    pass\n", encoding="utf-8")

    _fails(_replay(tmp_path, "--plugin", "lazy.py", "--out", "trace"), ExitCode.LOAD_FAILED,
           "error: plugin `lazy.py` registers no model",
           "  caused by: lazy:register made no call of ModelRegistry.register_model",
           "hint: name the function that registers your model: --plugin module:function",
           "what was recorded is kept in trace")


@pytest.mark.engine
def test_model_is_not_the_plugins(tmp_path: Path) -> None:
    """When vLLM loads another class than the plugin's, no verdict is given on it."""
    _requests(tmp_path)
    (tmp_path / "stranger.py").write_text(STRANGER_PLUGIN, encoding="utf-8")

    _fails(_replay(tmp_path, "--plugin", "stranger.py", "--out", "trace"), ExitCode.LOAD_FAILED,
           "error: the model that vLLM loaded is not the plugin's",
           f"  caused by: vLLM loaded glyphocr.modeling:{KNOWN_ARCHITECTURE}; "
           "the plugin registers stranger:register.<locals>.Stranger",
           "hint: `architectures` in config.json must name what the plugin registers",
           "what was recorded is kept in trace")
    assert "failed" == _footer(tmp_path / "trace")["outcome"]


@pytest.mark.engine
def test_model_folder_has_no_config(tmp_path: Path) -> None:
    """A folder without config.json is said to be that, not looked up on a hub."""
    _requests(tmp_path)
    (tmp_path / "weights").mkdir()

    _fails(_replay(tmp_path, "--out", "trace", model="weights"), ExitCode.LOAD_FAILED,
           "error: model folder weights has no config.json",
           "hint: give the folder that holds config.json and the weights",
           "what was recorded is kept in trace")


@pytest.mark.engine
def test_flag_that_vllm_does_not_know(tmp_path: Path) -> None:
    """A wrong engine flag is a usage error in vLLM's own words."""
    _requests(tmp_path)

    _fails(_replay(tmp_path, "--out", "trace", flags=("--blok-size", "32")), ExitCode.USAGE,
           "error: vLLM does not understand these flags",
           "  caused by: unrecognized arguments: --blok-size 32",
           "hint: everything after `--` goes to `vllm serve`",
           "what was recorded is kept in trace")


@pytest.mark.engine
def test_prompt_is_longer_than_the_model(tmp_path: Path) -> None:
    """A prompt that does not fit names the line of its request."""
    _requests(tmp_path)

    _fails(_replay(tmp_path, "--out", "trace", flags=("--max-model-len", "64")), ExitCode.FILE,
           "error: requests.jsonl:1: the prompt of request `r1` is too long",
           "  caused by: it has 99 tokens, its images included; the model takes 64, "
           "and one must be left for the answer",
           "hint: raise `--max-model-len`, or shorten the prompt or its images",
           "what was recorded is kept in trace")


@pytest.mark.engine
def test_engine_dies_half_way(tmp_path: Path) -> None:
    """A crash costs the engine process only: the trace is kept, named, and marked as failed."""
    _requests(tmp_path)
    (tmp_path / "dying.py").write_text(DYING_PLUGIN, encoding="utf-8")

    finished = _replay(tmp_path, "--plugin", "dying.py", "--out", "trace")

    lines = finished.stderr.splitlines()
    assert ["error: the engine process died", "  caused by: exit code 41",
            "  the end of vLLM's log:"] == lines[:3]
    assert "what was recorded is kept in trace" == lines[-1]
    assert "Traceback" not in finished.stderr
    assert "" == finished.stdout
    assert ExitCode.ENGINE_FAILED == finished.returncode
    assert "failed" == _footer(tmp_path / "trace")["outcome"]
    (events,) = (tmp_path / "trace" / "events").iterdir()
    assert events.stat().st_size > 0


@pytest.mark.engine
def test_redacted_engine_dies_half_way(tmp_path: Path) -> None:
    """A redacted recording leaves no log of vLLM even then, and quotes none."""
    _requests(tmp_path)
    (tmp_path / "dying.py").write_text(DYING_PLUGIN, encoding="utf-8")

    _fails(_replay(tmp_path, "--plugin", "dying.py", "--out", "trace", "--redact"),
           ExitCode.ENGINE_FAILED,
           "error: the engine process died",
           "  caused by: exit code 41",
           "hint: run again without --redact: a redacted recording keeps no log of vLLM",
           "what was recorded is kept in trace")

    assert ["events", "footer.json", "header.json", "requests.jsonl"] == sorted(
        path.name for path in (tmp_path / "trace").iterdir())


@pytest.mark.engine
def test_interrupted(tmp_path: Path) -> None:
    """Ctrl-C ends the engine as well, and keeps a trace that says so."""
    _requests(tmp_path)
    trace = tmp_path / "trace"
    process = subprocess.Popen(
        _command("replay", "requests.jsonl", "--out", "trace", "--", str(MODEL), *FLAGS),
        cwd=tmp_path, env=_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # A shell's background job, such as these tests may be in, ignores Ctrl-C.
        text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    try:
        events = _wait_for_events(trace)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()

    assert ["error: interrupted", "what was recorded is kept in trace"] == stderr.splitlines()
    assert "" == stdout
    assert ExitCode.INTERRUPTED == process.returncode
    assert "interrupted" == _footer(trace)["outcome"]
    # The file is named after the engine process, which leads a process group of its own.
    engine = int(events.stem.rpartition("-")[2])
    with pytest.raises(ProcessLookupError):
        os.killpg(engine, 0)


def _wait_for_events(trace: Path) -> Path:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        for path in (trace / "events").glob("*.jsonl"):
            return path
        time.sleep(0.05)
    raise AssertionError("no engine process opened its events file")
