from tests.support.mismatches import FOLDER, captured_frames, vectors

__all__ = ["FOLDER", "captured_frames", "vectors"]
