"""The graphs that are planned: those of corpus.toml, and those of any folder that is named."""

from __future__ import annotations

import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Recipe:
    """What `pardnn generate` is asked for."""

    family: str
    ops: int
    seed: int

    @property
    def name(self) -> str:
        size = f"{self.ops // 1000}k" if self.ops % 1000 == 0 else str(self.ops)
        return f"{self.family}-{size}-{self.seed}"


@dataclass(frozen=True)
class Graph:
    name: str
    part: str  # "tuning", "held-out", or "given" for what comes from a folder
    file: Path
    recipe: Recipe | None = None
    quick: bool = False
    large: bool = False

    def make(self, program: Path) -> None:
        """Write the file of a generated graph: anew in each run, since families may change."""
        if self.recipe is None:
            return
        recipe = self.recipe
        size = ["--ops", str(recipe.ops), "--seed", str(recipe.seed)]
        command = [str(program), "generate", recipe.family, *size, "-o", str(self.file)]
        subprocess.run(command, check=True)


def stem(file: Path) -> str:
    return file.name.removesuffix(".gz").removesuffix(".pdg").removesuffix(".json")


def listed(cache: Path) -> list[Graph]:
    """Every graph of corpus.toml; generated ones have their file in `cache` once made."""
    graphs = []
    for entry in tomllib.loads((HERE / "corpus.toml").read_text())["graph"]:
        quick, large = entry.get("quick", False), entry.get("large", False)
        if "file" in entry:
            file = HERE / "graphs" / entry["file"]
            graphs.append(Graph(stem(file), entry["part"], file, None, quick, large))
            continue
        recipe = Recipe(entry["family"], entry["ops"], entry["seed"])
        file = cache / f"{recipe.name}.pdg"
        graphs.append(Graph(recipe.name, entry["part"], file, recipe, quick, large))
    return graphs


def of_folder(folder: Path, cache: Path) -> list[Graph]:
    """Graph files, and operator graphs `*_training.json`, converted."""
    graphs = [Graph(stem(file), "given", file) for file in sorted(folder.glob("*.pdg*"))]
    for file in sorted(folder.glob("*_training.json")):
        from pardnn import readers  # only here is the Python package needed

        target = cache / f"{stem(file)}.pdg"
        readers.read(file).graph.write(str(target))
        graphs.append(Graph(stem(file), "given", target))
    if not graphs:
        raise SystemExit(f"--folder {folder}: found no *.pdg, *.pdg.gz or *_training.json")
    return graphs
