"""Where seeds go. The files beside this one write those of one subject each."""
import pathlib

CORPUS = pathlib.Path(__file__).parents[1] / "corpus"


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
