"""Drives a subject and the model by the same actions, and compares them after each one."""

from typing import Any

from startonce.model.interleaving import Action, IllegalAction, World, act, whole
from startonce.model.operations import Call, Fault, UnexpectedStatement
from startonce.model.predicates import GOES_ON, Step, judge, judge_trace
from startonce.model.reservation import NOTHING, Database
from startonce.oracle.edges import BLAME
from startonce.oracle.ledger import Divergence
from startonce.oracle.subject import STEPPING, Held, Subject


class Diverged(Exception):
    """Raised at the action after which subject and model differ."""

    def __init__(self, divergence: Divergence) -> None:
        super().__init__(f"{', '.join(divergence.clauses)} violated")
        self.divergence = divergence


class Lockstep:
    """A subject beside the model, from a database that both begin with.

    `world` is the model's state, `actions` and `steps` what was done so far; `judged` are the clauses
    that were evaluated on observed steps and kept.
    """

    def __init__(self, subject: Subject, start: Database = NOTHING, check: str = "machine") -> None:
        self.subject = subject
        self.check = check
        self.start = start
        self.world = World(start)
        self.actions: list[Action] = []
        self.steps: list[Step] = []
        self.judged: list[str] = []
        self.seen: list[Database] = []
        self._held: dict[str, Held] = {}
        self._late: list[tuple[str, Held]] = []
        subject.put(start)

    def do(self, action: Action) -> Step | None:
        """Take an action on both. Raises `Diverged`, and `IllegalAction` before anything is done."""
        if action.do == "run":
            return self._run(action)
        world, _ = act(self.world, action)
        self.actions.append(action)
        match action.do:
            case "crash":
                self._held.pop(action.caller).crash()
            case "land":
                place = [caller for caller, _ in self._late].index(action.caller)
                self.subject.land(self._late.pop(place)[1])
            case "pin":
                self.subject.pin()
            case "unpin":
                self.subject.unpin()
            case _:
                self.subject.deny(action.do == "deny")
        after = self._dump()
        if after != world.db:
            raise Diverged(self._divergence(["SET-5"], (None, world.db), (None, after)))
        self.world = world
        return None

    def _run(self, action: Action) -> Step:
        if STEPPING not in self.subject.capabilities:
            return self._whole(action)
        call = self.world.call(action.caller)
        if call is None:
            act(self.world, action._replace(statement="", fault=Fault.NONE))  # is it legal at all?
            call = Call(action.operation, action.args, action.now)
            held = self.subject.begin(_number(action.caller), call)
            self._held[action.caller] = held
        held = self._held[action.caller]
        action = action._replace(statement=held.statement or "")
        refused = getattr(held, "refused", None)
        if refused is not None:
            action = action._replace(fault=Fault.NONE)  # no statement is run that it could befall
        try:
            world, expected = act(self.world, action)
        except UnexpectedStatement as error:
            self.actions.append(action)
            wanted, _ = act(self.world, action._replace(statement=""))
            after = self._dump()
            raise Diverged(
                self._divergence([BLAME[call.operation]], (GOES_ON, wanted.db), (str(error), after))
            ) from error
        except IllegalAction:
            if self.world.call(action.caller) is None:
                self._held.pop(action.caller).crash()
            raise
        assert expected is not None
        self.actions.append(action)
        outcome = refused if refused is not None else held.step(expected.fault)
        if outcome is not None:
            del self._held[action.caller]
        if expected.fault is Fault.LATE:
            self._late.append((action.caller, held))
        return self._compare(world, expected, GOES_ON if outcome is None else outcome.answer)

    def _whole(self, action: Action) -> Step:
        """Run a whole operation on both: the subject cannot be held between its statements."""
        call = Call(action.operation, action.args, action.now)
        action = action._replace(fault=Fault.NONE)
        world, expected = whole(self.world, action)
        self.actions.append(action)
        outcome = self.subject.begin(_number(action.caller), call).step()
        if outcome is None:
            raise AssertionError(f"{self.subject.name} stopped inside {action.operation}")
        if self.world.denied:  # where there is nothing to write it need not come to a write at all
            _, calm = whole(self.world._replace(denied=False), action)
            if calm.after == calm.before and calm.answer == outcome.answer:
                world, expected = self.world, calm
        return self._compare(world, expected, outcome.answer)

    def _compare(self, world: World, expected: Step, answer: Any) -> Step:
        after = self._dump()
        step = expected._replace(after=after, answer=answer)
        self.steps.append(step)
        broken = self._judge(step)
        if answer != expected.answer or after != expected.after or broken:
            last = len(self.steps) - 1
            broken += [c for c, kept, number in judge_trace(self.steps) if not kept and number == last]
            raise Diverged(
                self._divergence(
                    broken or [BLAME[step.call.operation]],
                    (expected.answer, expected.after),
                    (answer, after),
                )
            )
        self.world = world
        return step

    def _dump(self) -> Database:
        self.seen.append(self.subject.dump())
        return self.seen[-1]

    def _judge(self, step: Step) -> list[str]:
        broken = []
        for clause, kept in judge(step):
            if kept:
                self.judged.append(clause)
            elif clause not in broken:
                broken.append(clause)
        return broken

    def finish(self) -> None:
        """Evaluate the clauses that speak of several steps. Raises `Diverged`."""
        for clause, kept, number in judge_trace(self.steps):
            if kept:
                self.judged.append(clause)
            else:
                step = self.steps[number]
                raise Diverged(self._divergence([clause], ("…", step.after), (step.answer, step.after)))

    def close(self) -> None:
        """Let go of every caller."""
        for held in self._held.values():
            held.crash()
        if self.world.replica is not None:
            self.subject.unpin()
        if self.world.denied:
            self.subject.deny(False)

    def _divergence(
        self,
        clauses: list[str],
        expected: tuple[Any, Database],
        observed: tuple[Any, Database],
    ) -> Divergence:
        return Divergence(
            tuple(clauses),
            self.check,
            self.start,
            tuple(self.actions),
            expected,
            observed,
            tuple(self.seen),
        )


def _number(caller: str) -> int:
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(caller)


def take(
    subject: Subject, actions: tuple[Action, ...], start: Database = NOTHING, check: str = "machine"
) -> tuple[Lockstep, Divergence | None]:
    """Take actions one after another; give how far it came, and the divergence that they lead to, if any.

    Raises `IllegalAction`.
    """
    lockstep = Lockstep(subject, start, check)
    try:
        for action in actions:
            lockstep.do(action)
        lockstep.finish()
    except Diverged as diverged:
        return lockstep, diverged.divergence
    finally:
        lockstep.close()
    return lockstep, None


def follow(
    subject: Subject, actions: tuple[Action, ...], start: Database = NOTHING, check: str = "machine"
) -> Divergence | None:
    """Take actions one after another; give the divergence that they lead to, if any."""
    return take(subject, actions, start, check)[1]
