"""The compiler: never asked, since the interpreter runs the kernels."""

from triton.backends.compiler import BaseBackend


class CpuBackend(BaseBackend):
    """Compiles nothing."""

    @staticmethod
    def supports_target(target):
        return target.backend == "cpu"

    def hash(self):
        return "vcachediag-cpu"

    def parse_options(self, options):
        return options

    def add_stages(self, stages, options, language):
        pass

    def load_dialects(self, context):
        pass

    def get_module_map(self):
        return {}
