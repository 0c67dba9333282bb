"""Request files: the shapes that people have at hand, read into `Request` records."""

from vcachediag.requests.read import read_requests
from vcachediag.requests.records import (
    Control,
    ControlName,
    Image,
    ImageForm,
    Request,
    RequestFile,
)

__all__ = [
    "Control",
    "ControlName",
    "Image",
    "ImageForm",
    "Request",
    "RequestFile",
    "read_requests",
]
