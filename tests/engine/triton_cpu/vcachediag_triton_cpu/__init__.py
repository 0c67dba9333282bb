"""A Triton backend `cpu` that compiles nothing: the interpreter runs the kernels.

vLLM starts its model runner V2 only where Triton has a backend for the platform. With this one
and TRITON_INTERPRET=1 the tests run that runner on a CPU, slowly.
"""
