"""The embedded model: accuracy through vLLM, and the server."""

import base64
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.engine.conftest import ENVIRONMENT, MODEL, ROOT

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(600)]


def test_held_out_lines_are_read(plain):
    """At least 95 % of 500 fresh lines are exactly right and end by themselves, and every
    phrasing, before and after the image, reads about equally well.
    """
    result = plain("lines", "plugins/glyphocr/model")
    main = result.pop("main")

    assert 500 == main["lines"]
    assert main["right"] >= 475
    assert main["stopped"] >= 475
    assert 12 == len(result)
    assert [] == [name for name, counts in result.items() if counts["right"] < 54]


def test_serves_an_openai_chat_request():
    """`vllm serve` answers a chat request with a `data:` image."""
    folder = ROOT / "examples" / "01_same_request_twice"
    body = json.loads((folder / "requests.jsonl").read_text().splitlines()[0])
    expected = body["expect"]
    for part in body["messages"][0]["content"]:
        if part["type"] == "image_url":
            picture = (folder / part["image_url"]["url"]).read_bytes()
            part["image_url"]["url"] = ("data:image/png;base64,"
                                        + base64.b64encode(picture).decode())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "vllm_cli.py"), "serve", str(MODEL),
         "--port", str(port), "--host", "127.0.0.1", "--enforce-eager",
         "--gpu-memory-utilization", "0.2", "--block-size", "32",
         "--served-model-name", "glyphocr"],
        env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        request = json.dumps({"model": "glyphocr", "messages": body["messages"],
                              "temperature": 0, "max_tokens": 64}).encode()
        answer = ask(f"http://127.0.0.1:{port}/v1/chat/completions", request, server)
    finally:
        server.terminate()
        server.wait(30)

    assert (expected, "stop") == (answer["message"]["content"], answer["finish_reason"])


def ask(url, body, server):
    """The first choice, asked for until the server is up."""
    for _ in range(200):
        assert server.poll() is None, "the server ended"
        try:
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["choices"][0]
        except (ConnectionError, urllib.error.URLError):
            time.sleep(1)
    raise AssertionError("the server did not come up")
