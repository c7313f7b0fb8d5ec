"""A Spark that runs its tasks in this process."""

from __future__ import annotations

from typing import Any


class FakeSpark:
    """Runs the tasks where it is asked to, one after the other, and answers in no order that anybody asked for."""

    applicationId = "app-1"  # noqa: N815 - Spark's name
    uiWebUrl = "http://driver:4040"  # noqa: N815 - Spark's name

    @property
    def sparkContext(self) -> FakeSpark:  # noqa: N802 - Spark's name
        return self

    defaultParallelism = 2  # noqa: N815 - Spark's name
    tasks = 0

    def setJobGroup(self, *arguments: Any, **more: Any) -> None:  # noqa: N802 - Spark's name
        pass

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802 - Spark's name
        pass

    def cancelAllJobs(self) -> None:  # noqa: N802 - Spark's name
        pass

    def range(self, start: int, end: int, step: int, slices: int) -> FakeSpark:
        assert slices == end
        job = FakeSpark()
        job.tasks = end
        return job

    def select(self, task: Any) -> FakeSpark:
        self.task = task
        return self

    def collect(self) -> list[dict[str, bytes]]:
        return [{"answer": self.task(place)} for place in range(self.tasks)][::-1]


class FakeUdf:
    """A user-defined function whose column is the function itself."""

    def __init__(self, function: Any, kind: str, useArrow: bool) -> None:  # noqa: N803 - Spark's name
        self.function = function

    def asNondeterministic(self) -> FakeUdf:  # noqa: N802 - Spark's name
        return self

    def __call__(self, column: str) -> FakeUdf:
        return self

    def alias(self, name: str) -> Any:
        return self.function


SPARK: Any = FakeSpark()
