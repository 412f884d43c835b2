"""The lifecycle and interleavings as Mermaid text, which code hosts draw by themselves in a discussion.

Text only: nothing here needs Mermaid. Whatever could mean something to it is written as an entity.
"""

from string import ascii_letters, digits

from startonce.draw.automaton import Lifecycle
from startonce.draw.lanes import Lanes, Step
from startonce.draw.text import drawn

_AS_IT_IS = frozenset(ascii_letters + digits + " .,_-()/'?!*+=")
_WORDS = ("end",)
"""Words of Mermaid that must not stand alone in a text."""


def state_diagram(graph: Lifecycle) -> str:
    """Return the life of one key as a Mermaid state diagram; without a row it begins and ends."""
    lines = ["stateDiagram-v2", "    direction LR"]
    absent = graph.states[0]
    for transition in graph.transitions:
        before = "[*]" if transition.before == absent else transition.before
        after = "[*]" if transition.after == absent else transition.after
        lines.append(f"    {before} --> {after}: {escaped(transition.statement)}")
    return "\n".join(lines) + "\n"


def sequence(lanes: Lanes) -> str:
    """Return an interleaving as a Mermaid sequence diagram.

    A statement that changes something is an arrow to it, with a cross where the reply is lost; every other
    one is a note over its caller.
    """
    lines = ["sequenceDiagram", f"    title {escaped(lanes.title)}"]
    for place, actor in enumerate(lanes.actors):
        word = "participant" if actor.kind == "caller" else "actor"
        lines.append(f"    {word} a{place} as {escaped(actor.name)}")
    for place, (name, begins) in enumerate(zip(lanes.stored, lanes.begins, strict=True)):
        lines.append(f"    participant s{place} as {escaped(name)}")
        lines.append(f"    Note over s{place}: {escaped(begins.text)}")
    for number, step in enumerate(lanes.steps, 1):
        lines += _step(number, step)
    if lanes.ends:
        first = "a0" if lanes.actors else "s0"
        last = f"s{len(lanes.stored) - 1}" if lanes.stored else first
        over = first if first == last else f"{first},{last}"
        lines.append(f"    Note over {over}: {'<br/>'.join(map(escaped, lanes.ends))}")
    return "\n".join(lines) + "\n"


def _step(number: int, step: Step) -> list[str]:
    said = [
        f"{number}. {step.text}",
        step.fault,
        step.told,
        f"answer: {step.answer}" if step.answer else "",
    ]
    text = "<br/>".join(escaped(line) for line in said if line)
    if step.harm:
        text = f"HARM<br/>{text}"
    if not step.changes:
        return [f"    Note over a{step.who}: {text}"]
    lines = []
    for thing, mark in step.changes:
        arrow = "->>" if step.heard else "-x"
        lines.append(f"    a{step.who}{arrow}s{thing}: {text}")
        lines.append(f"    Note over s{thing}: {escaped(mark.text)}")
    return lines


def escaped(text: str) -> str:
    """Write a text so that it means nothing to Mermaid: letters, digits, a few signs, else entities."""
    out = "".join(char if char in _AS_IT_IS else f"#{ord(char)};" for char in drawn(text))
    return f"#{ord(out[0])};{out[1:]}" if out.lower().strip() in _WORDS else out
