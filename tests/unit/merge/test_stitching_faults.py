"""What goes wrong while a file is put together of stripes is found before anything is published."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_acid.exceptions import CorruptFileError, VerificationError
from airflow_provider_acid.merge.stitch import stitch_rows
from airflow_provider_acid.merge.stitch.stitched_file import StitchedFile
from airflow_provider_acid.merge.stitch.stripe_segments import SurveyedStripe, plan_segments
from airflow_provider_acid.merge.stitch.stripe_survey import survey_stripes
from airflow_provider_acid.plan.plan import CopiedStripes, OrcOptions
from airflow_provider_acid.storages.local import LocalStorage
from airflow_provider_acid.storages.rules import StoreRules
from tests.unit.merge.acid_files import Partition, delete
from tests.unit.merge.orc_tails import Tail
from tests.unit.merge.striped_files import (
    BASE,
    DELETES,
    striped_partition,
)

ALWAYS = CopiedStripes.ALWAYS
WHOLE = OrcOptions(slice_bytes=0)


@pytest.fixture(params=["compared with sources", "compared by digests"])
def partition(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Partition:
    if request.param == "compared by digests":
        monkeypatch.setattr(LocalStorage, "rules", StoreRules())
    return striped_partition(tmp_path)


def planning(change: Callable[[list[SurveyedStripe]], list[SurveyedStripe]]) -> Callable[[pytest.MonkeyPatch], None]:
    """The segments are planned for other stripes than were surveyed."""

    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            stitch_rows, "plan_segments", lambda stripes, small: plan_segments(change(list(stripes)), small)
        )

    return apply


def losing_one(stripes: list[SurveyedStripe]) -> list[SurveyedStripe]:
    return [*stripes[:4], *stripes[5:]]


def doubling_one(stripes: list[SurveyedStripe]) -> list[SurveyedStripe]:
    return [stripes[0], *stripes]


def swapping_two(stripes: list[SurveyedStripe]) -> list[SurveyedStripe]:
    return [stripes[1], stripes[0], *stripes[2:]]


def taking_touched_for_untouched(stripes: list[SurveyedStripe]) -> list[SurveyedStripe]:
    return [replace(stripe, is_untouched=True) for stripe in stripes]


def copying_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stripe after the one that should be."""
    copy = StitchedFile.copy
    monkeypatch.setattr(
        StitchedFile, "copy", lambda self, reader, donor, stripe: copy(self, reader, donor, stripe + (stripe == 4))
    )


def copying_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    append = StitchedFile._append

    def shifted(self: Any, reader: Any, start: int, length: int) -> bytes | None:
        return append(self, reader, start + 1, length)

    monkeypatch.setattr(StitchedFile, "_append", shifted)


def flipping_a_bit(file: Any) -> None:
    """Of a copied stripe, after it was written."""
    stripe = file._stripes[4]
    place = stripe.offset + stripe.indexLength + stripe.dataLength // 2
    file._file.flush()
    with Path(file._file.name).open("r+b") as written:
        written.seek(place)
        (byte,) = written.read(1)
        written.seek(place)
        written.write(bytes([byte ^ 1]))


def wrong_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    seal = StitchedFile.seal

    def wrong(self: Any, schema: Any, options: Any, keys: Any, *more: Any) -> None:
        seal(self, schema, options, [keys[1], *keys[1:]], *more)

    monkeypatch.setattr(StitchedFile, "seal", wrong)


def sealing(change: Callable[[Any], None]) -> Callable[[pytest.MonkeyPatch], None]:
    """The tail is made of something else than was written."""

    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        seal = StitchedFile.seal

        def wrong(self: Any, *arguments: Any) -> None:
            change(self)
            seal(self, *arguments)

        monkeypatch.setattr(StitchedFile, "seal", wrong)

    return apply


def statistics_of_another(file: Any) -> None:
    """Both stripes have as many rows, so that the file's statistics stay."""
    file._statistics[3], file._statistics[4] = file._statistics[4], file._statistics[3]


def rows_of_another(file: Any) -> None:
    file._stripes[3].numberOfRows -= 1
    file._stripes[4].numberOfRows += 1


def index_taken_for_data(file: Any) -> None:
    file._stripes[3].indexLength -= 1
    file._stripes[3].dataLength += 1


def taking_a_copy_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of a stripe and its bytes fit, but they are of another than was looked at."""
    survey = survey_stripes

    def exchanged(*arguments: Any) -> Any:
        found = survey(*arguments)
        stripes = [replace(found.stripes[4], stripe=3), *found.stripes[5:]]
        return replace(found, stripes=(*found.stripes[:4], *stripes))

    monkeypatch.setattr(stitch_rows, "survey_stripes", exchanged)


@pytest.mark.parametrize(
    "go_wrong",
    [
        sealing(statistics_of_another),
        sealing(rows_of_another),
        sealing(index_taken_for_data),
        taking_a_copy_for_another,
        planning(losing_one),
        planning(doubling_one),
        planning(swapping_two),
        planning(taking_touched_for_untouched),
        copying_another,
        copying_beside,
        sealing(flipping_a_bit),
        wrong_keys,
    ],
)
def test_what_goes_wrong_while_stripes_are_put_together_is_found(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, go_wrong: Any
) -> None:
    partition.write(DELETES, [delete(3, 250, 10)])
    go_wrong(monkeypatch)
    with pytest.raises(VerificationError):
        partition.merge(stripe_copy=ALWAYS, orc=WHOLE)


def test_a_buffer_that_does_not_hold_a_copied_block_is_found(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def smaller_blocks(file: Any) -> None:
        file._block_bytes -= 1

    sealing(smaller_blocks)(monkeypatch)
    with pytest.raises(VerificationError, match="stripe 0 is not the one that was looked at"):
        partition.merge(stripe_copy=ALWAYS, orc=WHOLE)


def test_a_file_that_changes_after_it_was_looked_at_is_refused(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_and_change(*arguments: Any) -> Any:
        found = survey_stripes(*arguments)
        file = partition.path / BASE / "bucket_00000"
        tail = Tail(file.read_bytes())
        tail.footer.ClearField("softwareVersion")
        sealed = tail.sealed()
        file.write_bytes(sealed[:3] + bytes(file.stat().st_size - len(sealed)) + sealed[3:])
        return found

    monkeypatch.setattr(stitch_rows, "survey_stripes", look_and_change)
    with pytest.raises(CorruptFileError):
        partition.merge(stripe_copy=ALWAYS, orc=WHOLE)
    assert partition.attempts() == []


def test_only_where_reading_again_is_dear_digests_are_taken(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    copy, digests = StitchedFile.copy, set[bool]()

    def copied(*arguments: Any) -> bytes | None:
        digest = copy(*arguments)
        digests.add(digest is not None)
        return digest

    monkeypatch.setattr(StitchedFile, "copy", copied)
    partition.merge(stripe_copy=ALWAYS, orc=WHOLE)
    assert digests == {"by digests" in request.node.name}
