"""Every file we write, declared once: typed, versioned, without torch.

Whoever writes or reads one imports it from here. `Artifact` is a JSON file; `Record` is a part of
one, or a line of a file of lines.
"""

from hardcorenas.artifacts.base import Artifact, Record, StepArtifact, read_lines
from hardcorenas.artifacts.certificate import Certificate, Entry, Stopwatch, Timing, Verdict, worst
from hardcorenas.artifacts.front import (
    EstimateQuality,
    FrontFile,
    FrontPoint,
    FrontResource,
    ScoredNetwork,
)
from hardcorenas.artifacts.network import ArchitectureFile, CardFile, ExportedFile, ExportFile
from hardcorenas.artifacts.search import (
    AnswerRecord,
    BudgetRecord,
    LocalSearchRecord,
    PointFile,
    PointRecord,
    ProjectionRecord,
    SearchFile,
    TraceStep,
)
from hardcorenas.artifacts.summary import SummaryFile, SweepFile, SweepRow, TrainedRow
from hardcorenas.artifacts.table import (
    CalibrationRecord,
    Provenance,
    TableFile,
    TargetRecord,
)
from hardcorenas.artifacts.training import (
    DataRecord,
    FinetunedFile,
    FinetuneRunFile,
    Moment,
    RunFile,
    StartRecord,
    SupernetFile,
)

__all__ = [
    "AnswerRecord",
    "ArchitectureFile",
    "Artifact",
    "BudgetRecord",
    "CalibrationRecord",
    "CardFile",
    "Certificate",
    "DataRecord",
    "Entry",
    "EstimateQuality",
    "ExportFile",
    "ExportedFile",
    "FinetuneRunFile",
    "FinetunedFile",
    "FrontFile",
    "FrontPoint",
    "FrontResource",
    "LocalSearchRecord",
    "Moment",
    "PointFile",
    "PointRecord",
    "ProjectionRecord",
    "Provenance",
    "Record",
    "RunFile",
    "ScoredNetwork",
    "SearchFile",
    "StartRecord",
    "StepArtifact",
    "Stopwatch",
    "SummaryFile",
    "SupernetFile",
    "SweepFile",
    "SweepRow",
    "TableFile",
    "TargetRecord",
    "Timing",
    "TraceStep",
    "TrainedRow",
    "Verdict",
    "read_lines",
    "worst",
]
