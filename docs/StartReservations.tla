------------------------- MODULE StartReservations -------------------------
(***************************************************************************)
(* Start reservations, written down a second time.                         *)
(*                                                                         *)
(* A caller who wants a run started sends a key. A row in the database     *)
(* says which run the key means; one conditional UPDATE (the claim)        *)
(* decides who may start it; a fence can refuse the start, and only then   *)
(* is the claim given back (the release); a lock per run lets the one      *)
(* execution begin.                                                        *)
(*                                                                         *)
(* Sources: the protocol's clauses (ids such as REL-4 are theirs) and      *)
(* docs/transition-system.md, which fixes what one state and one step is.  *)
(* This text was written without sight of the project's Python model, so   *)
(* that the two can be held against each other: for the same constants     *)
(* the number of distinct states must be the same.                         *)
(*                                                                         *)
(* How to run: docs/tla/*.cfg, one file per scope. For instance            *)
(*   cd docs; java -cp tla2tools.jar tlc2.TLC -deadlock \                  *)
(*        -config tla/scope-a.cfg StartReservations.tla                    *)
(* (-deadlock switches the deadlock check off: to come to rest is fine.)   *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Callers,    \* how many callers; they are numbered from 1
  Keys,       \* how many keys; numbered from 1
  Attempts,   \* how many starts each caller may begin
  Durable,    \* TRUE: the lock is a row, kept for good. FALSE: a mutex
  Unknowns,   \* budget: a write is applied, its reply lost
  Lates,      \* budget: a write lands after its caller went on
  Refusals,   \* budget: a write certainly not applied, or a read that fails
  Crashes,    \* budget: a process dies
  Flips,      \* budget: the fence closes or opens
  Purges,     \* budget: one terminal row is deleted
  Settles,    \* budget: somebody outside settles a run
  Cancels,    \* budget: an operator begins a cancel
  Frees,      \* budget: an operator begins a free
  Stales,     \* budget: a replica stays behind
  Dropped,    \* the duties nobody observes, e.g. {"REL-4"}

  \* Readings: points the page on the grain leaves open. They change no
  \* behaviour, only which states are told apart.
  ProposalKnown, \* between insert and read back a caller knows the run it
                 \* proposed (TRUE), or goes by no run yet (FALSE)
  RowRunKnown,   \* when a read back sends a caller to look, it goes by the
                 \* run just read (TRUE), or by what it knew before (FALSE)
  AgainKept      \* the mark "again" is kept until a step says otherwise
                 \* (TRUE), or only while something depends on it (FALSE)

VARIABLES
  rows,     \* for each key: the run it names and the state, or NoRow
  locks,    \* for each run minted so far: holder and ended, or Unlocked
  execs,    \* for each run: how often its effect happened
  wins,     \* for each run: claims answered True, less those given back
  closed,   \* is the fence closed
  drained,  \* closed, and seen quiet at some moment since it closed
  procs,    \* the callers, then the operators in the order of arrival
  flying,   \* writes that are still on their way: a multiset
  replica,  \* what the replica that stays behind shows, if there is one
  budget    \* what is left of each fault

vars == <<rows, locks, execs, wins, closed, drained, procs, flying, replica,
          budget>>

----------------------------------------------------------------------------
(* Values. Numbers and tuples of numbers only where things are compared.   *)

NoRun == 0
NoKey == 0
NoRow == [run |-> NoRun, state |-> "none"]

\* A holder is a caller with the number of starts it has left, so that two
\* deliveries never share one; or one of the two words, or nobody.
Nobody   == <<0, 0>>
ByFree   == <<-1, 0>>
ByCancel == <<-2, 0>>
IsExecution(h) == h[1] > 0

Unlocked == [holder |-> Nobody, ended |-> FALSE]

NoReplica == [there |-> FALSE, rows |-> <<>>, locks |-> <<>>]

Start == [unknown |-> Unknowns, late |-> Lates, refusal |-> Refusals,
          crash |-> Crashes, flip |-> Flips, purge |-> Purges,
          settle |-> Settles, cancel |-> Cancels, free |-> Frees,
          stale |-> Stales]

\* What a process knows: the statement it runs next, its key, the run it
\* goes by, "again", "after", and how many starts it may still begin.
Empty(at, left) == [at |-> at, key |-> NoKey, run |-> NoRun, again |-> FALSE,
                    after |-> "", left |-> left]

Idle(n) == IF n = 0 THEN Empty("over", 0) ELSE Empty("idle", n)
Crashed == Empty("crashed", 0)

IsCaller(i) == i <= Callers
Me(i) == <<i, procs[i].left>>

Minted == 1 .. Len(locks)

----------------------------------------------------------------------------
(* Writes: what each one needs, and what it does when it is applied. A     *)
(* write carries its parameters and nothing else, so that it can land      *)
(* after its caller has forgotten it.                                      *)

Stmt(op, key, run, holder) ==
  [op |-> op, key |-> key, run |-> run, holder |-> holder]

\* Does the write find what it asks for, that is, would it answer True?
Matches(w) ==
  CASE w.op = "insert"   -> rows[w.key] = NoRow
    [] w.op = "claim"    -> rows[w.key] = [run |-> w.run, state |-> "reserved"]
    [] w.op = "release"  -> rows[w.key] = [run |-> w.run, state |-> "started"]
    [] w.op = "take"     -> /\ rows[w.key] = [run |-> w.run,
                                              state |-> "started"]
                            /\ locks[w.run] = Unlocked
    [] w.op = "take any" -> locks[w.run] = Unlocked
    [] w.op = "persist"  -> locks[w.run] = [holder |-> w.holder,
                                            ended |-> FALSE]
    [] w.op = "settle"   -> \E k \in 1 .. Keys : rows[k].run = w.run
    [] w.op = "delete"   -> rows[w.key].run = w.run

RowsAfter(w) ==
  IF ~Matches(w) THEN rows ELSE
  CASE w.op = "insert"  -> [rows EXCEPT ![w.key] =
                              [run |-> w.run, state |-> "reserved"]]
    [] w.op = "claim"   -> [rows EXCEPT ![w.key].state = "started"]
    [] w.op = "release" -> [rows EXCEPT ![w.key].state = "reserved"]
    [] w.op = "settle"  -> [k \in 1 .. Keys |->
                              IF rows[k].run = w.run
                              THEN [rows[k] EXCEPT !.state = "terminal"]
                              ELSE rows[k]]
    [] w.op = "delete"  -> [rows EXCEPT ![w.key] = NoRow]
    [] OTHER            -> rows

LocksAfter(w) ==
  IF ~Matches(w) THEN locks ELSE
  CASE w.op \in {"take", "take any"} ->
                           [locks EXCEPT ![w.run].holder = w.holder]
    [] w.op = "persist" -> [locks EXCEPT ![w.run].ended = TRUE]
    [] OTHER            -> locks

Do(w) == rows' = RowsAfter(w) /\ locks' = LocksAfter(w)

Plus(bag, w) ==
  [x \in DOMAIN bag \cup {w} |->
     (IF x \in DOMAIN bag THEN bag[x] ELSE 0) + (IF x = w THEN 1 ELSE 0)]
Minus(bag, w) ==
  LET left == IF bag[w] = 1 THEN DOMAIN bag \ {w} ELSE DOMAIN bag
  IN  [x \in left |-> IF x = w THEN bag[x] - 1 ELSE bag[x]]

Spend(fault) ==
  /\ budget[fault] > 0
  /\ budget' = [budget EXCEPT ![fault] = @ - 1]

----------------------------------------------------------------------------
(* Where a process stands next.                                            *)

\* An answer ends a start: all is forgotten but the starts left.
Answered(p) == Idle(p.left)

\* Go on to another statement. "after" is known only where it matters.
GoOn(p, at) == [p EXCEPT !.at = at, !.after = "",
                         !.again = AgainKept /\ @]

ToInsert(p) == [Empty("insert", p.left) EXCEPT !.key = p.key]
ToClaim(p, run, again) ==
  [GoOn(p, "claim") EXCEPT !.run = run, !.again = again]
ToRelease(p) == [GoOn(p, "release") EXCEPT !.again = FALSE]
ToLook(p, why) ==
  [p EXCEPT !.at = "look", !.after = why,
            !.again = (AgainKept \/ why = "claim") /\ @]
ToSettle(p, run, answer) ==
  [GoOn(p, "settle") EXCEPT !.run = run, !.after = answer]

\* After a read back (2).
AfterReadBack(p, rws) ==
  LET row == rws[p.key] IN
  CASE row = NoRow            -> ToInsert(p)
    [] row.state = "reserved" -> ToClaim(p, row.run, FALSE)
    [] OTHER -> LET q == ToLook(p, "row")
                IN  IF RowRunKnown THEN [q EXCEPT !.run = row.run] ELSE q

\* After a look at row and lock (4). A mutex cannot be seen by looking.
AfterLook(p, rws, lks) ==
  LET row  == rws[p.key]
      lock == IF Durable /\ row.run # NoRun THEN lks[row.run] ELSE Unlocked
      same == p.after = "claim" /\ row.run = p.run
  IN
  CASE row = NoRow -> ToInsert(p)
    [] row.state = "reserved" ->
         IF p.after = "lock" \/ (same /\ p.again)
         THEN Answered(p)                                     \* retry
         ELSE ToClaim(p, row.run, same)
    [] row.state = "started" ->
         CASE lock.holder = ByCancel -> ToSettle(p, row.run, "settled")
           [] lock.ended             -> ToSettle(p, row.run, "replayed")
           [] OTHER                  -> Answered(p)   \* retry or pending
    [] row.state = "terminal" -> Answered(p)

----------------------------------------------------------------------------
(* Steps of any process. An outcome is a pair: what the process knows      *)
(* next, and by how much the wins of its run change.                       *)

Becomes(i, o) ==
  /\ procs' = [procs EXCEPT ![i] = o[1]]
  /\ wins' = IF o[2] = 0 THEN wins
             ELSE [wins EXCEPT ![procs[i].run] = @ + o[2]]

\* One write, and everything that can befall it. `lost` is a set: where a
\* duty is dropped there is more than one way on.
Write(i, w, yes, no, lost, refused) ==
  /\ UNCHANGED <<execs, closed, replica>>
  /\ \/ /\ Do(w)
        /\ Becomes(i, IF Matches(w) THEN yes ELSE no)
        /\ UNCHANGED <<flying, budget>>
     \/ /\ Spend("unknown")
        /\ Do(w)
        /\ \E o \in lost : Becomes(i, o)
        /\ UNCHANGED flying
     \/ /\ Spend("late")
        /\ flying' = Plus(flying, w)
        /\ \E o \in lost : Becomes(i, o)
        /\ UNCHANGED <<rows, locks>>
     \/ /\ Spend("refusal")
        /\ Becomes(i, refused)
        /\ UNCHANGED <<rows, locks, flying>>

\* One read of the primary: it succeeds, or it fails.
Read(i, read, failed) ==
  /\ UNCHANGED <<rows, locks, execs, wins, closed, flying, replica>>
  /\ \/ procs' = [procs EXCEPT ![i] = read] /\ UNCHANGED budget
     \/ procs' = [procs EXCEPT ![i] = failed] /\ Spend("refusal")

\* The same read answered by the replica, which has then caught up.
ReadReplica(i, read) ==
  /\ replica.there
  /\ procs' = [procs EXCEPT ![i] = read]
  /\ replica' = NoReplica
  /\ UNCHANGED <<rows, locks, execs, wins, closed, flying, budget>>

\* A move that touches nothing but the process.
Move(i, next) ==
  /\ procs' = [procs EXCEPT ![i] = next]
  /\ UNCHANGED <<rows, locks, execs, wins, closed, flying, replica, budget>>

----------------------------------------------------------------------------
(* The statements of a start.                                              *)

\* 1. Insert. The fresh run is minted whatever becomes of the statement:
\*    the number of the run is the length of `locks` after this step.
\*    An idle caller begins with it, on a key of its choice.
InsertWith(i, p) ==
  LET run  == Len(locks) + 1
      w    == Stmt("insert", p.key, run, Nobody)
      sent == [p EXCEPT !.at = "read back",
                        !.run = IF ProposalKnown THEN run ELSE NoRun]
  IN
  /\ locks' = Append(locks, Unlocked)
  /\ execs' = Append(execs, 0)
  /\ wins'  = Append(wins, 0)
  /\ UNCHANGED <<closed, replica>>
  /\ \/ /\ rows' = RowsAfter(w)
        /\ procs' = [procs EXCEPT ![i] = sent]
        /\ UNCHANGED <<flying, budget>>
     \/ /\ Spend("unknown")
        /\ rows' = RowsAfter(w)
        /\ procs' = [procs EXCEPT ![i] = sent]
        /\ UNCHANGED flying
     \/ /\ Spend("late")
        /\ flying' = Plus(flying, w)
        /\ procs' = [procs EXCEPT ![i] = sent]
        /\ UNCHANGED rows
     \/ /\ Spend("refusal")
        /\ procs' = [procs EXCEPT ![i] = Answered(p)]
        /\ UNCHANGED <<rows, flying>>

Begin(i) ==
  /\ procs[i].at = "idle"
  /\ \E k \in 1 .. Keys :
       InsertWith(i, [Empty("insert", procs[i].left - 1) EXCEPT !.key = k])

Insert(i) == procs[i].at = "insert" /\ InsertWith(i, procs[i])

\* 2. Read back.
ReadBack(i) ==
  /\ procs[i].at = "read back"
  /\ \/ Read(i, AfterReadBack(procs[i], rows), Answered(procs[i]))
     \/ ReadReplica(i, AfterReadBack(procs[i], replica.rows))

\* 3. Claim. A lost reply is neither won nor lost (CLM-6).
Claim(i) ==
  LET p   == procs[i]
      won == <<GoOn(p, "fence"), 1>>
  IN
  /\ p.at = "claim"
  /\ \/ Write(i, Stmt("claim", p.key, p.run, Nobody),
              won,
              <<ToLook(p, "claim"), 0>>,
              {<<Answered(p), 0>>}
                \cup (IF "CLM-6" \in Dropped THEN {won} ELSE {}),
              <<Answered(p), 0>>)
     \/ "STA-1" \in Dropped /\ Move(i, GoOn(p, "fence"))

\* 4. Look.
Look(i) ==
  /\ procs[i].at = "look"
  /\ \/ Read(i, AfterLook(procs[i], rows, locks), Answered(procs[i]))
     \/ ReadReplica(i, AfterLook(procs[i], replica.rows, replica.locks))

\* 5. Fence.
Fence(i) ==
  LET p == procs[i] IN
  /\ p.at = "fence"
  /\ \/ Read(i, IF closed THEN ToRelease(p) ELSE GoOn(p, "take"),
             Answered(p))
     \/ "STA-3" \in Dropped /\ Move(i, GoOn(p, "take"))

\* 6. Release. Once sent it may have taken effect, so it is given back.
Release(i) ==
  LET p == procs[i] IN
  /\ p.at = "release"
  /\ Write(i, Stmt("release", p.key, p.run, Nobody),
           <<Answered(p), -1>>,
           <<ToLook(p, "release"), 0>>,
           {<<Answered(p), -1>>}
             \cup (IF "REL-4" \in Dropped THEN {<<p, -1>>} ELSE {}),
           <<IF p.again THEN Answered(p) ELSE [p EXCEPT !.again = TRUE], 0>>)

\* 7. Take the run lock. The mutex is no statement: nothing befalls it.
Take(i) ==
  LET p == procs[i] IN
  /\ p.at = "take"
  /\ IF Durable
     THEN LET o == <<GoOn(p, "holder"), 0>> IN
          Write(i, Stmt("take", p.key, p.run, Me(i)), o, o,
                {o} \cup (IF "LCK-5" \in Dropped
                          THEN {<<Answered(p), 0>>} ELSE {}),
                <<p, 0>>)
     ELSE LET mine == locks[p.run] = Unlocked IN
          /\ locks' = IF mine THEN [locks EXCEPT ![p.run].holder = Me(i)]
                      ELSE locks
          /\ procs' = [procs EXCEPT ![i] = IF mine THEN GoOn(p, "work")
                                           ELSE ToLook(p, "lock")]
          /\ UNCHANGED <<rows, execs, wins, closed, flying, replica, budget>>

\* 8. Read the holder back.
Holder(i) ==
  LET p == procs[i] IN
  /\ p.at = "holder"
  /\ Read(i, IF locks[p.run].holder = Me(i) THEN GoOn(p, "work")
             ELSE ToLook(p, "lock"),
          p)

\* 9. Work: the effect.
Work(i) ==
  LET p == procs[i] IN
  /\ p.at = "work"
  /\ execs' = [execs EXCEPT ![p.run] = @ + 1]
  /\ \/ /\ procs' = [procs EXCEPT ![i] =
                       GoOn(p, IF Durable THEN "persist" ELSE "let go")]
        /\ UNCHANGED locks
     \/ /\ "REL-3" \in Dropped   \* takes the failure for a refusal
        /\ procs' = [procs EXCEPT ![i] = ToRelease(p)]
        /\ locks' = IF Durable THEN locks
                    ELSE [locks EXCEPT ![p.run] = Unlocked]
  /\ UNCHANGED <<rows, wins, closed, flying, replica, budget>>

LetGo(i) ==
  LET p == procs[i] IN
  /\ p.at = "let go"
  /\ locks' = [locks EXCEPT ![p.run] = Unlocked]
  /\ procs' = [procs EXCEPT ![i] = ToSettle(p, p.run, "started")]
  /\ UNCHANGED <<rows, execs, wins, closed, flying, replica, budget>>

\* 10. Persist the result, which marks the lock as ended.
Persist(i) ==
  LET p == procs[i] IN
  /\ p.at = "persist"
  /\ Write(i, Stmt("persist", NoKey, p.run, Me(i)),
           <<ToSettle(p, p.run, "started"), 0>>,
           <<GoOn(p, "read ended"), 0>>,
           {<<GoOn(p, "read ended"), 0>>},
           <<p, 0>>)

\* 11. After a persist whose reply was lost, or that found the lock ended.
ReadEnded(i) ==
  LET p == procs[i] IN
  /\ p.at = "read ended"
  /\ Read(i, IF locks[p.run] = [holder |-> Me(i), ended |-> TRUE]
             THEN ToSettle(p, p.run, "started")
             ELSE GoOn(p, "persist"),
          p)

\* 12. Settle. Whatever becomes of it, the answer is the one meant.
Settle(i) ==
  LET p == procs[i]
      o == <<Answered(p), 0>>
  IN
  /\ p.at = "settle"
  /\ Write(i, Stmt("settle", NoKey, p.run, Nobody), o, o, {o}, o)

\* DUT-2 dropped: a won claim is dispatched a second time. The first idle
\* caller becomes the second delivery; it costs that caller one start.
CopyOf(i) ==
  /\ "DUT-2" \in Dropped
  /\ procs[i].at = "fence"
  /\ \E j \in 1 .. Callers :
       /\ procs[j].at = "idle"
       /\ \A h \in 1 .. j - 1 : procs[h].at # "idle"
       /\ Move(j, [procs[i] EXCEPT !.left = procs[j].left - 1])

Caller(i) ==
  \/ Begin(i) \/ Insert(i) \/ ReadBack(i) \/ Claim(i) \/ Look(i)
  \/ Fence(i) \/ Release(i) \/ Take(i) \/ Holder(i) \/ Work(i)
  \/ LetGo(i) \/ Persist(i) \/ ReadEnded(i) \/ Settle(i) \/ CopyOf(i)

----------------------------------------------------------------------------
(* Operators. Each is added when it begins and over when it is answered.   *)
(* Both exist only with a durable lock.                                    *)

Arrive(fault, p) ==
  /\ Durable
  /\ Spend(fault)
  /\ procs' = Append(procs, p)
  /\ UNCHANGED <<rows, locks, execs, wins, closed, flying, replica>>

BeginCancel ==
  \E r \in Minted : Arrive("cancel", [Empty("cancel: take", 0)
                                        EXCEPT !.run = r])
BeginFree ==
  \E k \in 1 .. Keys : Arrive("free", [Empty("free: look", 0)
                                         EXCEPT !.key = k])

Cancel(i) ==
  LET p    == procs[i]
      over == <<Answered(p), 0>>
  IN
  \/ /\ p.at = "cancel: take"
     /\ LET o == <<GoOn(p, "cancel: holder"), 0>> IN
        Write(i, Stmt("take any", NoKey, p.run, ByCancel), o, o, {o}, over)
  \/ /\ p.at = "cancel: holder"
     /\ Read(i, IF locks[p.run].holder = ByCancel
                THEN GoOn(p, "cancel: settle") ELSE Answered(p),
             Answered(p))
  \/ /\ p.at = "cancel: settle"
     /\ Write(i, Stmt("settle", NoKey, p.run, Nobody),
              over, over, {over}, over)

\* The free's look is read from the primary (STA-3).
Free(i) ==
  LET p    == procs[i]
      over == <<Answered(p), 0>>
  IN
  \/ /\ p.at = "free: look"
     /\ LET row == rows[p.key]
            fit == /\ row # NoRow
                   /\ \/ row.state = "started" /\ locks[row.run] = Unlocked
                      \/ locks[row.run].holder = ByFree
        IN  Read(i, IF fit THEN [GoOn(p, "free: take") EXCEPT !.run = row.run]
                    ELSE Answered(p),
                 Answered(p))
  \/ /\ p.at = "free: take"
     /\ LET o == <<GoOn(p, "free: holder"), 0>> IN
        Write(i, Stmt("take", p.key, p.run, ByFree), o, o, {o}, over)
  \/ /\ p.at = "free: holder"
     /\ Read(i, IF locks[p.run].holder = ByFree
                THEN GoOn(p, "free: delete") ELSE Answered(p),
             Answered(p))
  \/ /\ p.at = "free: delete"
     /\ Write(i, Stmt("delete", p.key, p.run, Nobody),
              over, over, {over}, over)

----------------------------------------------------------------------------
(* Faults that befall nobody's statement.                                  *)

\* A mutex dies with the process that holds it; a lock row does not.
Crash(i) ==
  /\ procs[i].at \notin {"idle", "over", "crashed"}
  /\ Spend("crash")
  /\ procs' = [procs EXCEPT ![i] = Crashed]
  /\ locks' = IF Durable THEN locks
              ELSE [r \in Minted |-> IF locks[r].holder = Me(i)
                                     THEN Unlocked ELSE locks[r]]
  /\ UNCHANGED <<rows, execs, wins, closed, flying, replica>>

\* A late write is applied, for nobody.
Land ==
  \E w \in DOMAIN flying :
    /\ Do(w)
    /\ flying' = Minus(flying, w)
    /\ UNCHANGED <<execs, wins, closed, procs, replica, budget>>

Flip ==
  /\ Spend("flip")
  /\ closed' = ~closed
  /\ UNCHANGED <<rows, locks, execs, wins, procs, flying, replica>>

Purge ==
  \E k \in 1 .. Keys :
    /\ rows[k].state = "terminal"
    /\ Spend("purge")
    /\ rows' = [rows EXCEPT ![k] = NoRow]
    /\ UNCHANGED <<locks, execs, wins, closed, procs, flying, replica>>

IsOver(r) == IF Durable THEN locks[r].ended \/ locks[r].holder = ByCancel
             ELSE execs[r] > 0 /\ locks[r] = Unlocked

\* It may find nothing to settle (SET-2): then only the budget changes.
SettleOutside ==
  \E r \in Minted :
    /\ IsOver(r) \/ "DUT-3" \in Dropped
    /\ Spend("settle")
    /\ Do(Stmt("settle", NoKey, r, Nobody))
    /\ UNCHANGED <<execs, wins, closed, procs, flying, replica>>

StayBehind ==
  /\ ~replica.there
  /\ Spend("stale")
  /\ replica' = [there |-> TRUE, rows |-> rows, locks |-> locks]
  /\ UNCHANGED <<rows, locks, execs, wins, closed, procs, flying>>

----------------------------------------------------------------------------
(* The whole.                                                              *)

\* Nothing started, and no execution that holds a lock and has not ended.
Quiet(rws, lks) ==
  /\ \A k \in DOMAIN rws : rws[k].state # "started"
  /\ \A r \in DOMAIN lks : IsExecution(lks[r].holder) => lks[r].ended

Init ==
  /\ rows = [k \in 1 .. Keys |-> NoRow]
  /\ locks = <<>>
  /\ execs = <<>>
  /\ wins = <<>>
  /\ closed = FALSE
  /\ drained = FALSE
  /\ procs = [i \in 1 .. Callers |-> Idle(Attempts)]
  /\ flying = [w \in {} |-> 0]
  /\ replica = NoReplica
  /\ budget = Start

Step ==
  \/ \E i \in 1 .. Callers : Caller(i)
  \/ \E i \in Callers + 1 .. Len(procs) : Cancel(i) \/ Free(i)
  \/ \E i \in DOMAIN procs : Crash(i)
  \/ BeginCancel \/ BeginFree
  \/ Land \/ Flip \/ Purge \/ SettleOutside \/ StayBehind

\* An opening fence ends "drained"; a closing one begins the watch anew,
\* since an open fence is never drained.
Next == Step /\ drained' = (closed' /\ (drained \/ Quiet(rows', locks')))

Spec == Init /\ [][Next]_vars

----------------------------------------------------------------------------
(* What should hold.                                                       *)

\* STA-9, per run.
OneExecution == \A r \in Minted : execs[r] <= 1

\* CLM-2, counted as the page on the grain says.
OneWinner == \A r \in Minted : wins[r] <= 1

\* A run that has executed is never offered to the next caller.
ExecutedNotReserved ==
  \A k \in 1 .. Keys :
    rows[k].state = "reserved" => execs[rows[k].run] = 0

\* STA-11, for a durable lock: no effect happens in a step that begins in a
\* drained state.
NothingFromDrained ==
  [][ (Durable /\ drained) =>
        \A r \in DOMAIN execs : execs'[r] = execs[r] ]_vars

\* FRE-1, FRE-3, FRE-4: a run that a free or a cancel holds never executed.
WordsNeverExecute ==
  \A r \in Minted : locks[r].holder \in {ByFree, ByCancel} => execs[r] = 0

\* The pieces fit together.
Sane ==
  /\ Len(execs) = Len(locks) /\ Len(wins) = Len(locks)
  /\ \A k \in 1 .. Keys : rows[k].run \in 0 .. Len(locks)
  /\ \A k \in 1 .. Keys : (rows[k].run = NoRun) <=> (rows[k] = NoRow)
  /\ drained => closed
  /\ \A f \in DOMAIN budget : budget[f] >= 0
=============================================================================
