#!/usr/bin/env python3
"""Checks a pack exported by Reckoner, or a proof. Python 3.9 or later, standard library only; it only reads.

    python3 verify.py PACK [--previous PACK] [--seal MONTH=SEAL] [--books-seal MONTH=SEAL]
    python3 verify.py PROOF.json [--seal MONTH=SEAL]

This is the second verifier. It was written from docs/pack-format.md and shares no code with verify.mjs; both must come to
the same result. Take it from a release of Reckoner, never from the maker of the pack, and compare its SHA-256 with the one in
docs/auditors.md or in a seal's e-mail.

Exit status: 0 all checks hold, 1 refused, 2 nothing could be checked.
"""

import argparse
import base64
import hashlib
import json
import os
import re
import stat
import sys
import unicodedata
from collections import Counter, defaultdict, namedtuple
from datetime import date, timedelta
from decimal import Context, Decimal, setcontext, ROUND_HALF_UP
from itertools import accumulate
from urllib.parse import unquote_to_bytes

setcontext(Context(prec=60))

# --- Results ----------------------------------------------------------------------------------------------------------


class Malformed(Exception):
    """The grammar is violated."""


class Refused(Exception):
    """A refusing check has failed: nothing after it is read."""


class Unusable(Exception):
    """Nothing can be checked."""


def visible(text):
    """A text from a pack, safe for a terminal: control, format and direction characters are spelled out."""
    return "".join(
        "\\u{%x}" % ord(c) if unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp") else c for c in text
    )


def say(text, stream=None):
    print(visible(text), file=stream or sys.stdout)


class Report:
    """The checks of one run, in order, with what each found."""

    SHOWN = 20

    def __init__(self):
        self.failed = []
        self.total = 0

    def check(self, name, work, refuses=False):
        found = Findings()
        looked = value = None
        try:
            looked, value = work(found)
        except Malformed as error:
            found(str(error))
        say("%s  %-20s %s" % ("FAIL" if found.count else "ok  ", name, looked or ""))
        for text in found.shown:
            say("      " + text)
        if found.count > self.SHOWN:
            say("      … and %d more" % (found.count - self.SHOWN))
        if found.count:
            self.failed.append(name)
            self.total += found.count
            if refuses:
                raise Refused()
        for text in found.notes:
            say("note  " + text)
        return value


class Findings:
    """What a check found: call it with a problem."""

    def __init__(self):
        self.count = 0
        self.shown = []
        self.notes = []

    def __call__(self, text):
        self.count += 1
        if self.count <= Report.SHOWN:
            self.shown.append(text)

    def add(self, other):
        self.shown = (self.shown + other.shown)[: Report.SHOWN]
        self.count += other.count


# --- The grammar ------------------------------------------------------------------------------------------------------

MONTH = r"[0-9]{4}-(?:0[1-9]|1[0-2])"
DAY = MONTH + r"-(?:0[1-9]|[12][0-9]|3[01])"
CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
INSTANT = DAY + "T" + CLOCK + r"\.[0-9]{6}Z"
NUMBER = r"(?:0|[1-9][0-9]{0,14})"
HASH = r"[0-9a-f]{64}"
AMOUNT = r"(?:0|-?(?:0\.[0-9]{0,3}[1-9]|[1-9][0-9]*(?:\.[0-9]{0,3}[1-9])?))"
WITH_DIGITS = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]{1,4})?"
CURRENCY = r"[A-Z]{3}"
NAME = r"[a-z][a-z0-9_]*"
INSTALLATION = r"[0-9a-f]{12} (?:production|sandbox)"
CONTROL = r"[a-z][a-z0-9-]*(?::[a-z0-9-]+)*"


def form(pattern):
    return re.compile(pattern).fullmatch


is_month, is_day, is_number, is_hash, is_amount, is_money, is_currency, is_name = map(
    form, (MONTH, DAY, NUMBER, HASH, AMOUNT, WITH_DIGITS, CURRENCY, NAME)
)


def following(month):
    year, number = int(month[:4]), int(month[5:])
    return "%04d-%02d" % ((year, number + 1) if number < 12 else (year + 1, 1))


def canonical(cell):
    """40.00 is 40; -0.00 is not valid and stays different from 0."""
    return cell.rstrip("0").rstrip(".") if "." in cell else cell


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def in_order(texts):
    keys = [text.encode() for text in texts]
    return all(one < other for one, other in zip(keys, keys[1:]))


# --- Reading files ----------------------------------------------------------------------------------------------------


def decode(data, place):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Malformed(place + ": is not UTF-8") from None


def read_lines(folder, name):
    """The lines of a file as bytes without LF."""
    with open(os.path.join(folder, name), "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                raise Malformed(name + ": its last line does not end")
            yield line[:-1]


def read_small(folder, name):
    path = os.path.join(folder, name)
    if os.stat(path).st_size > 1 << 26:
        raise Malformed(name + ": is too long")
    with open(path, "rb") as file:
        return decode(file.read(), name)


def parse_json(text, place):
    """JSON without duplicate keys, floats and constants beyond JSON."""

    def unique(pairs):
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a key occurs twice")
        return dict(pairs)

    def refuse(what):
        raise ValueError(what)

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise Malformed(place + ": is not JSON, or has a duplicate key") from None


def parse_document(text, place):
    """A JSON document written as the program writes it."""
    value = parse_json(text, place)
    try:
        again = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    except ValueError:
        again = None
    if again != text:
        raise Malformed(place + ": is not written as the program writes it")
    return value


def take(value, keys, place):
    if not isinstance(value, dict) or list(value) != keys:
        raise Malformed("%s: does not have exactly %s" % (place, ", ".join(keys)))
    return [value[key] for key in keys]


def want_text(value, pattern, place):
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise Malformed(place + ": does not have its form")
    return value


def want_number(value, place):
    if type(value) is not int or not is_number(str(value)):
        raise Malformed(place + ": is not a number")
    return value


def want_list(value, place):
    if not isinstance(value, list):
        raise Malformed(place + ": is not a list")
    return value


UNESCAPE = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
ESCAPE = re.compile(r"\\(.?)", re.DOTALL)


def read_field(field, place):
    if "\\" not in field:
        return field
    if field == "\\N":
        return None

    def unescape(match):
        if match.group(1) not in UNESCAPE:
            raise Malformed(place + ": has an unknown escape")
        return UNESCAPE[match.group(1)]

    return ESCAPE.sub(unescape, field)


class Table:
    """A .tsv file: iterate over (number of the row, fields, line)."""

    def __init__(self, folder, name):
        self.name = name
        self.lines = read_lines(folder, name)
        self.columns = self._columns()
        self.rows = 0

    def _columns(self):
        for line in self.lines:
            columns = decode(line, self.name).split("\t")
            if not all(map(is_name, columns)) or len(set(columns)) != len(columns):
                raise Malformed(self.name + ": its first line does not name its columns")
            return columns
        raise Malformed(self.name + ": is empty")

    def __iter__(self):
        name, width = self.name, len(self.columns)
        for line in self.lines:
            self.rows += 1
            text = decode(line, name)
            if "\r" in text:
                raise Malformed("%s: row %d has a carriage return" % (name, self.rows))
            fields = text.split("\t")
            if len(fields) != width:
                raise Malformed("%s: row %d does not have %d fields" % (name, self.rows, width))
            if "\\" in text:
                fields = [read_field(field, "%s: row %d" % (name, self.rows)) for field in fields]
            yield self.rows, fields, line

    def places(self, wanted):
        if not set(wanted) <= set(self.columns):
            raise Malformed("%s: does not have the columns %s" % (self.name, ", ".join(wanted)))
        return [self.columns.index(each) for each in wanted]


def read_csv(folder, name, columns):
    """The rows of a .csv file. A small automaton over the characters of each record."""
    number, pending = -1, ""
    for line in read_lines(folder, name):
        text = pending + decode(line, name)
        if '"' not in text and "\r" not in text:
            cells = text.split(",")
        else:
            cells = split_record(text, "%s: row %d" % (name, number + 1), columns)
            if cells is None:  # A quoted cell continues on the next line.
                pending = text + "\n"
                continue
        pending = ""
        number += 1
        if number == 0 and cells != columns:
            raise Malformed("%s: its header is not %s" % (name, ",".join(columns)))
        if len(cells) != len(columns):
            raise Malformed("%s: row %d does not have %d cells" % (name, number, len(columns)))
        if number:
            yield cells
    if pending:
        raise Malformed(name + ": a quote is open at its end")
    if number < 0:
        raise Malformed(name + ": is empty")


def split_record(text, place, columns):
    if text.count('"') % 2:
        return None
    cells, at, end = [], 0, len(text)
    while True:
        if at < end and text[at] == '"':
            close = at + 1
            while True:
                close = text.find('"', close)
                if close < 0:
                    raise Malformed(place + " does not have %d cells" % len(columns))
                if text[close + 1 : close + 2] != '"':
                    break
                close += 2
            cells.append(text[at + 1 : close].replace('""', '"'))
            at = close + 1
        else:
            stop = text.find(",", at)
            stop = end if stop < 0 else stop
            cell = text[at:stop]
            if '"' in cell or "\r" in cell or "\n" in cell:
                raise Malformed(place + " does not have %d cells" % len(columns))
            cells.append(cell)
            at = stop
        if at == end:
            return cells
        if text[at] != ",":
            raise Malformed(place + " does not have %d cells" % len(columns))
        at += 1


def as_cell(value):
    if value is None:
        return ""
    if value is True or value is False:
        return str(value).lower()
    return str(value) if isinstance(value, (str, int)) else value


def read_rows(folder, name, columns):
    """The rows of a data file: cells in the order of the columns; for JSON Lines also the object and its line."""
    if name.endswith(".csv"):
        for cells in read_csv(folder, name, columns):
            yield cells, None, None
        return
    for number, line in enumerate(read_lines(folder, name), 1):
        text = decode(line, name)
        value = parse_json(text, "%s: row %d" % (name, number))
        if not isinstance(value, dict) or list(value) != [each for each in columns if each in value]:
            raise Malformed("%s: row %d has other keys than %s" % (name, number, ", ".join(columns)))
        yield [as_cell(value.get(each)) for each in columns], value, text


# --- Layout -----------------------------------------------------------------------------------------------------------

FORMATS = ("csv", "jsonl")


DATA = {
    "ledger": ["ledger"],
    "invoices": ["invoices", "invoice-lines", "voids", "write-offs", "openings"],
    "payments": ["payments", "payment-moves", "credit-moves", "bank-lines"],
    "events": ["events"],
    "partners": ["partners", "policies", "partner-changes"],
    "journal": ["opening-balances", "journal", "gl-exports", "gl-lines"],
}


def data_files(kind, fmt):
    """The data files of a kind of pack; None if there is no such kind or format."""
    if kind == "journal" and fmt in ("hledger", "beancount"):
        return ["journal.ledger" if fmt == "hledger" else "journal.beancount"]
    if not isinstance(kind, str) or kind not in DATA or fmt not in FORMATS:
        return None
    return ["%s.%s" % (name, fmt) for name in DATA[kind] if (name, fmt) != ("invoice-lines", "jsonl")]


TOP = {"manifest.json", "README.txt", "dictionary.csv"}
for _kind in DATA:
    for _format in FORMATS + ("hledger", "beancount"):
        TOP.update(data_files(_kind, _format) or [])
    TOP.update(name + ".parquet" for name in DATA[_kind])
IN_SEALED = form(r"record\.(?:txt|sig|tsr)|" + NAME + r"\.tsv")
IN_BOOKS = form(r"record\.(?:txt|sig|tsr)|entries\.tsv|accounts\.tsv")


def is_known(parts, is_folder):
    if is_folder:
        return parts[0] in ("sealed", "books") and (len(parts) == 1 or (len(parts) == 2 and bool(is_month(parts[1]))))
    if len(parts) == 1:
        return parts[0] in TOP
    allowed = {"sealed": IN_SEALED, "books": IN_BOOKS}.get(parts[0])
    return len(parts) == 3 and allowed is not None and bool(is_month(parts[1])) and bool(allowed(parts[2]))


def scan(folder, problem, parts=()):
    names = []
    with os.scandir(os.path.join(folder, *parts)) as entries:
        entries = sorted(entries, key=lambda each: each.name)
    if not entries:
        problem("/".join(parts) + " is empty" if parts else "the folder is empty")
    for entry in entries:
        own = parts + (entry.name,)
        name = "/".join(own)
        mode = entry.stat(follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            problem(name + " is not a regular file")
        elif not is_known(own, stat.S_ISDIR(mode)):
            problem(name + " does not belong in a pack")
        elif stat.S_ISDIR(mode):
            names += scan(folder, problem, own)
        else:
            names.append(name)
    return names


# --- The manifest -----------------------------------------------------------------------------------------------------

LEDGER_SUMS = ["spotPrice", "partnerCut", "invoiceAmount"]
INVOICE_SUMS = LEDGER_SUMS + ["credit_applied", "amount_due", "credited", "amount_paid", "balance"]
SUMMED = {"ledger": LEDGER_SUMS, "invoices": INVOICE_SUMS, "payments": ["amount"]}
KEYS = (
    "format version kind data_format from to program installation environment created_at months preliminary files"
).split()


class Manifest:
    def __init__(self, folder):
        name = "manifest.json"
        value = dict(zip(KEYS, take(parse_document(read_small(folder, name), name), KEYS, name)))
        if value["format"] != "reckoner-export" or type(value["version"]) is not int or value["version"] != 1:
            raise Malformed(name + ": is not of an export pack, version 1")
        self.kind = value["kind"]
        self.data = data_files(self.kind, value["data_format"])
        if self.data is None:
            raise Malformed(name + ": kind and data_format are unknown")
        self.first = want_text(value["from"], MONTH, name + ": from")
        self.last = want_text(value["to"], MONTH, name + ": to")
        if self.first > self.last:
            raise Malformed(name + ": from is after to")
        want_text(value["program"], "[0-9A-Za-z.+-]+", name + ": program")
        self.installation = "%s %s" % (value["installation"], value["environment"])
        want_text(self.installation, INSTALLATION, name + ": installation")
        want_text(value["created_at"], DAY + "T" + CLOCK + r"\.[0-9]{3}Z", name + ": created_at")
        self.months = []
        for each in want_list(value["months"], name + ": months"):
            self._month(each, name + ": months")
        still_open = any(each["books_seal"] is None for each in self.months)
        whole = bool(self.months) and self.months[-1]["month"] == self.last
        preliminary = value["preliminary"]
        if type(preliminary) is not bool or (still_open and not preliminary) or (whole and not still_open and preliminary):
            raise Malformed(name + ": preliminary does not follow from the months")
        self.files = {}
        for each in want_list(value["files"], name + ": files"):
            self._file(each, name + ": files")

    def _month(self, value, place):
        keys = ["month", "seal", "previous", "books_seal"]
        month, seal, previous, books = take(value, keys, place)
        want_text(month, MONTH, place)
        for text, pattern in ((seal, HASH), (books, HASH), (previous, MONTH)):
            if text is not None:
                want_text(text, pattern, "%s: %s" % (place, month))
        before = self.months[-1] if self.months else None
        wrong = None
        if not self.first <= month <= self.last:
            wrong = "is not from %s to %s" % (self.first, self.last)
        elif previous is not None and following(previous) != month:
            wrong = "previous is not the month before"
        elif before and (before["month"] >= month or previous is None):
            wrong = "is out of order"
        elif before and seal is not None and (before["seal"] is None or before["month"] != previous):
            wrong = "does not follow the sealed month before it"
        elif books is not None and (seal is None or (before and before["books_seal"] is None)):
            wrong = "has closed books out of order"
        if wrong:
            raise Malformed("%s: %s %s" % (place, month, wrong))
        self.months.append(value)

    def _file(self, value, place):
        name = value.get("name") if isinstance(value, dict) else None
        summed = SUMMED.get(self.kind) if name in (self.kind + ".csv", self.kind + ".jsonl") else None
        keys = ["name", "bytes", "sha256", "rows"] + (["totals"] if summed else [])
        _, size, digest, rows = take(value, keys, place)[:4]
        want_text(name, r"[\x20-\x7e]{1,200}", place)
        place = "%s: %s" % (place, name)
        if name in self.files:
            raise Malformed(place + " occurs twice")
        totals = None
        if summed:
            totals = value["totals"]
            if not isinstance(totals, dict) or not all(map(is_currency, totals)) or not in_order(totals):
                raise Malformed(place + ": its totals are not by currency")
            totals = {
                currency: [Decimal(canonical(want_text(sum_, WITH_DIGITS, place))) for sum_ in take(sums, summed, place)]
                for currency, sums in totals.items()
            }
        self.files[name] = {
            "bytes": want_number(size, place),
            "sha256": want_text(digest, HASH, place),
            "rows": want_number(rows, place),
            "totals": totals,
        }


# --- Records ----------------------------------------------------------------------------------------------------------

ONE, ANY = 1, 2
SEAL_LINES = [
    (ONE, "reckoner", "seal 1"),
    (ONE, "installation", "(%s)" % INSTALLATION),
    (ONE, "month", "(%s)" % MONTH),
    (ONE, "previous", "none|(%s) (%s)" % (MONTH, HASH)),
    (ONE, "issued_on", DAY),
    (ONE, "closed_at", INSTANT),
    (ONE, "sealed_at", INSTANT),
    (ONE, "rows", "(%s)" % NUMBER),
    (ONE, "rows_root", "(%s)" % HASH),
    (ONE, "rows_columns", "(%s(?: %s)*)" % (NAME, NAME)),
    (ONE, "closed_with", "({0}) rows, {0} late, {0} partners with documents, {0} without activity".format(NUMBER)),
    (ANY, "total", "({0}) ({1}) ({1}) ({1})".format(CURRENCY, AMOUNT)),
    (ONE, "facts", "({0}) to ({0})".format(NUMBER)),
    (ANY, "facts_of", "(%s) (%s) (%s)" % (NAME, NUMBER, HASH)),
]
BOOKS_LINES = [
    (ONE, "reckoner", "books 1"),
    (ONE, "installation", "(%s)" % INSTALLATION),
    (ONE, "month", "(%s)" % MONTH),
    (ONE, "previous", "none|(%s) (%s)" % (MONTH, HASH)),
    (ONE, "sealed_after", "(%s) (%s)" % (MONTH, HASH)),
    (ONE, "closed_at", INSTANT),
    (ONE, "facts_to", "(%s)" % NUMBER),
    (ONE, "entries", "(%s) (%s)" % (NUMBER, HASH)),
    (ONE, "accounts", "(%s) (%s)" % (NUMBER, HASH)),
    (ONE, "we_are", "(supplier_to_partner|principal)"),
    (ANY, "balance", "(%s) (%s) (%s)" % (CONTROL, CURRENCY, AMOUNT)),
]

CHECKPOINT_LINES = [
    (ONE, "reckoner", "checkpoint 1"),
    (ONE, "installation", "(%s)" % INSTALLATION),
    (ONE, "checkpoint", "([1-9][0-9]{0,14})"),
    (ONE, "previous", "none|(%s) (%s)" % (NUMBER, HASH)),
    (ONE, "sealed_after", "none|(%s) (%s)" % (MONTH, HASH)),
    (ONE, "taken_at", "(%s)" % INSTANT),
    (ONE, "entries", "({0}) to ({0})".format(NUMBER)),
    (ONE, "rows_columns", "(%s(?: %s)*)" % (NAME, NAME)),
    (ANY, "rows", "(%s) ([1-9][0-9]{0,14}) (%s)" % (MONTH, HASH)),
    (ONE, "facts", "({0}) to ({0})".format(NUMBER)),
    (ANY, "facts_of", "(%s) ([1-9][0-9]{0,14}) (%s)" % (NAME, HASH)),
]


def parse_record(text, lines, place):
    """The groups of each line by its word. The grammar decides which words there are, and in which order."""
    if not text.endswith("\n"):
        raise Malformed(place + ": its last line does not end")
    rest = text[:-1].split("\n")
    values, at = {}, 0
    for how_often, word, pattern in lines:
        groups = []
        while at < len(rest) and rest[at].split(" ")[0] == word and (how_often == ANY or not groups):
            match = re.fullmatch("%s (?:%s)" % (word, pattern), rest[at])
            if not match:
                raise Malformed("%s: line %d is not a line %s" % (place, at + 1, word))
            groups.append(match.groups())
            at += 1
        if how_often == ONE and not groups:
            raise Malformed("%s: line %d is not the line %s" % (place, at + 1, word))
        values[word] = groups if how_often == ANY else groups[0]
    if at < len(rest):
        raise Malformed("%s: line %d is not known" % (place, at + 1))
    return values


class SealRecord:
    def __init__(self, text, place):
        lines = parse_record(text, SEAL_LINES, place)
        self.text = text
        self.seal = sha256(text.encode())
        (self.installation,) = lines["installation"]
        (self.month,) = lines["month"]
        self.previous = lines["previous"] if lines["previous"][0] else None
        self.rows = int(lines["rows"][0])
        (self.root,) = lines["rows_root"]
        self.columns = lines["rows_columns"][0].split(" ")
        self.totals = {each[0]: [Decimal(sum_) for sum_ in each[1:]] for each in lines["total"]}
        self.first, self.last = map(int, lines["facts"])
        self.tables = {name: (int(rows), digest) for name, rows, digest in lines["facts_of"]}
        wrong = None
        if self.first > self.last:
            wrong = "its range of facts is empty"
        elif not self.tables or any(rows == 0 for rows, _ in self.tables.values()):
            wrong = "it covers no facts"
        elif len(set(self.columns)) != len(self.columns):
            wrong = "a column of the rows occurs twice"
        elif lines["closed_with"] != lines["rows"]:
            wrong = "it was closed with another number of rows"
        elif not in_order([each[0] for each in lines["total"]]) or not in_order([each[0] for each in lines["facts_of"]]):
            wrong = "its lines are not in order"
        elif self.first != 1 if self.previous is None else following(self.previous[0]) != self.month:
            wrong = "it does not follow its predecessor"
        if wrong:
            raise Malformed("%s: %s" % (place, wrong))


class BooksRecord:
    def __init__(self, text, place):
        lines = parse_record(text, BOOKS_LINES, place)
        self.text = text
        self.seal = sha256(text.encode())
        (self.installation,) = lines["installation"]
        (self.month,) = lines["month"]
        self.previous = lines["previous"] if lines["previous"][0] else None
        self.sealed_after = lines["sealed_after"]
        self.facts_to = int(lines["facts_to"][0])
        (self.we_are,) = lines["we_are"]
        self.tables = {name: (int(lines[name][0]), lines[name][1]) for name in ("entries", "accounts")}
        self.balances = {each[:2]: Decimal(each[2]) for each in lines["balance"]}
        keys = [tuple(part.encode() for part in each[:2]) for each in lines["balance"]]
        wrong = None
        if self.previous and following(self.previous[0]) != self.month:
            wrong = "it does not follow its predecessor"
        elif self.sealed_after[0] < self.month:
            wrong = "it follows the seal of an earlier month"
        elif any(one >= other for one, other in zip(keys, keys[1:])):
            wrong = "its lines are not in order"
        elif not all(self.balances.values()):
            wrong = "a balance is zero"
        if wrong:
            raise Malformed("%s: %s" % (place, wrong))


class Checkpoint:
    def __init__(self, text, place):
        lines = parse_record(text, CHECKPOINT_LINES, place)
        self.text = text
        self.seal = sha256(text.encode())
        (self.installation,), (self.number,), (self.taken_at,) = (
            lines[word] for word in ("installation", "checkpoint", "taken_at")
        )
        self.previous, self.sealed_after = (
            lines[word] if lines[word][0] else None for word in ("previous", "sealed_after")
        )
        self.entries, self.facts = (tuple(map(int, lines[word])) for word in ("entries", "facts"))
        # The Merkle trees of the pack's tables and months in these ranges.
        self.found, self.found_rows = {}, {}
        self.columns = lines["rows_columns"][0].split(" ")
        self.rows = {month: (int(rows), root) for month, rows, root in lines["rows"]}
        self.tables = {name: (int(rows), root) for name, rows, root in lines["facts_of"]}
        in_lines = all(in_order([each[0] for each in lines[word]]) for word in ("rows", "facts_of"))
        ranges = all(last >= first - 1 for first, last in (self.entries, self.facts))
        if not in_lines or not ranges or len(set(self.columns)) != len(self.columns):
            raise Malformed(place + ": its lines are not in order, or a range ends before it begins")


def many(count, one, more=None):
    """1 row, 2 rows."""
    return "%d %s" % (count, one if count == 1 else more or one + "s")


# --- A parsed pack ----------------------------------------------------------------------------------------------------

SUMS = ["spot_price", "partner_cut", "invoice_amount"]
BILL = ["partner_id", "month", "currency", "arrangement"]
EVENT = "event_id occurred_at action subject details claimed_by os_user host via user_id".split()
PAYMENT = (
    "payment_id received_on entry_on partner_id currency amount method account reference payer_name payer_account "
    "source identity recorded_at"
).split()
BANK_LINE = (
    "account currency direction amount bank_booked_on value_on bank_reference text payer_name payer_account type "
    "is_reversal return_code"
).split()
OUTCOME = "outcome payment_id payout_id payment_reversal_id needs_review reason".split()
COLUMNS = {
    "documents": (
        "document_id number series sequence document purpose partner_id month currency arrangement issued_on due_on "
        "enrollments entries spot_price partner_cut invoice_amount credit_applied partner_name replaces credits reason entry_on "
        "opening_id opening_number opening_revision original_amount fact_id"
    ).split(),
    "openings": ["opening_id", "cut_over_on"],
    "opening_totals": "opening_id currency items invoices credits cash control".split(),
    "skipped_numbers": "series first_sequence last_sequence event_id".split(),
    "user_roles": "user_role_id user_id action role partner_id source".split(),
    "user_ends": ["user_id"],
    "approval_requests": "request_id requested_by expires_at".split(),
    "approval_decisions": "request_id requested_by decision decided_by recorded_at event_id".split(),
    "document_lines": "document_id position policy_id policy_name kind month count".split() + SUMS,
    "document_taxes": "document_id position currency country category rate taxable tax line_positions".split(),
    "voids": ["document_id"] + BILL + ["reason", "voided_on", "entry_on", "recorded_at", "event_id"],
    "document_pdfs": ["document_id", "sha256"],
    "book_closes": ["month", "facts_to", "record", "seal"],
    "checkpoints": "fact_id checkpoint_number facts_to entries_to taken_at record seal".split(),
    "seal_signatures": "kind name seal key_name public_key signature signed_at".split(),
    "seal_time_stamps": "kind name seal response_sha256".split(),
    "credit_applications": (
        "credit_application_id credit_note_id invoice_id amount applied_on entry_on recorded_at event_id"
    ).split(),
    "credit_releases": "credit_application_id released_on entry_on recorded_at event_id".split(),
    "write_offs": "fact_id write_off_id document_id amount reason written_off_on entry_on recorded_at event_id".split(),
    "write_off_reversals": "fact_id write_off_id reason reversed_on entry_on recorded_at event_id".split(),
    "payments": PAYMENT + ["opening_id", "opening_number", "fact_id"],
    "payment_assignments": (
        "payment_assignment_id payment_id from_partner_id partner_id amount assigned_on entry_on recorded_at"
    ).split(),
    "payment_applications": (
        "payment_application_id payment_id document_id partner_id currency amount applied_on entry_on recorded_at evidence"
    ).split(),
    "payment_unapplications": "payment_application_id payment_reversal_id unapplied_on entry_on recorded_at".split(),
    "small_differences": "payment_application_id document_id currency amount entry_on recorded_at".split(),
    "payment_reversals": (
        "payment_reversal_id payment_id partner_id currency amount kind code reason booked_to reversed_on entry_on recorded_at"
    ).split(),
    "payment_reinstatements": "payment_reversal_id partner_id reinstated_on entry_on".split(),
    "bank_lines": ["bank_line_id"] + BANK_LINE,
    "bank_statements": "bank_statement_id bank_file_id reference opening closing credits debits lines".split(),
    "bank_statement_lines": ["bank_statement_id", "position", "bank_line_id"],
    "bank_files": ["bank_file_id", "name", "sha256", "recorded_at"],
    "bank_line_outcomes": ["bank_line_id"] + OUTCOME,
    "payouts": "payout_id bank_line_id account currency amount received_on entry_on".split(),
    "payout_settlements": "payout_id fees entry_on".split(),
    "credit_refunds": (
        "credit_refund_id document_id partner_id currency amount account reference refunded_on entry_on recorded_at"
    ).split(),
    "credit_refund_returns": "credit_refund_id reason returned_on entry_on recorded_at".split(),
    "refund_matches": (
        "refund_match_id account currency amount credit_refund_id payment_reversal_id paid_on entry_on"
    ).split(),
    "balance_transactions": ["balance_transaction_id", "id"],
    "share_allocations": (
        "share_allocation_id balance_transaction_id partner_id currency amount settled_currency settled_amount occurred_on entry_on"
    ).split(),
    "share_payments": ["share_allocation_id", "amount"],
    "gl_exports": "gl_export_id month format part kind seal books_closed recorded_at event_id".split(),
    "gl_export_lines": (
        "gl_export_id line control account partner_id policy_id currency amount to_account class location name memo"
    ).split(),
    "gl_export_files": ["gl_export_id", "position", "name", "sha256"],
}
EVENTS_OF_KIND = {"events": EVENT, "partners": EVENT}
# The details of events that skipped numbers or decided on requests; for payments, the action of all events.
RESUMPTION = ["event_id", "action", "subject", "details", "user_id"]
# The table's own number, and the tables whose facts have the number of another fact.
NUMBERED = {
    "documents": "document_id",
    "credit_applications": "credit_application_id",
    "write_offs": "write_off_id",
    "payments": "payment_id",
    "payment_assignments": "payment_assignment_id",
    "payment_applications": "payment_application_id",
    "payment_reversals": "payment_reversal_id",
    "bank_lines": "bank_line_id",
    "payouts": "payout_id",
    "credit_refunds": "credit_refund_id",
    "refund_matches": "refund_match_id",
    "balance_transactions": "balance_transaction_id",
    "share_allocations": "share_allocation_id",
}
NUMBERED_AFTER = {
    "voids": "documents",
    "credit_releases": "credit_applications",
    "write_off_reversals": "write_offs",
    "payment_unapplications": "payment_applications",
    "small_differences": "payment_applications",
    "payment_reinstatements": "payment_reversals",
    "payout_settlements": "payouts",
    "credit_refund_returns": "credit_refunds",
}
KEY_OF = {**NUMBERED, **{table: NUMBERED[of] for table, of in NUMBERED_AFTER.items()}}
AMOUNTS = "amount credit_applied settled_amount fees opening closing credits debits rate taxable tax".split()
FORMS = {name: is_amount for name in SUMS + AMOUNTS}
FORMS.update(dict.fromkeys("sequence first_sequence last_sequence position count entries facts_to event_id".split(), is_number))
FORMS.update(dict.fromkeys([*NUMBERED.values(), "invoice_id", "credit_note_id", "replaces", "gl_export_id", "line"], is_number))
FORMS.update(dict.fromkeys(("entry_on", "dated_on"), is_day))
FORMS.update(month=is_month, posted_month=is_month, currency=is_currency, settled_currency=is_currency)
NULLABLE = {
    "documents": ("replaces", "credits"),
    "payment_unapplications": ("payment_reversal_id",),
    "bank_line_outcomes": ("payment_id", "payout_id", "payment_reversal_id"),
    "bank_statements": ("opening", "closing"),
    "refund_matches": ("credit_refund_id", "payment_reversal_id"),
}
ROW_COLUMNS = (
    "entry_id posted_month partner_id currency arrangement policy_id kind month spot_price partner_cut invoice_amount "
    "accepted_at recorded_at quote_id requote_id reversal_id enrollment_id"
).split()
ENTRY = "fact fact_id entry_on dated_on debit credit currency amount document reference".split()
ACCOUNT = "control account currency amount".split()


def check_forms(columns, place, nullable=()):
    """A function that requires the forms of these (place in the row, name) columns."""
    formed = [(at, name, FORMS[name]) for at, name in columns if name in FORMS]

    def check(number, fields):
        for at, name, right in formed:
            if name not in nullable if fields[at] is None else not right(fields[at]):
                raise Malformed("%s: row %d: %s does not have its form" % (place, number, name))

    return check


class Pack:
    """A pack parsed as far as `tables`. Problems that are not malformations are kept in `wrong`."""

    def __init__(self, folder, check):
        self.folder = folder
        self.records, self.books = {}, {}
        self.facts = defaultdict(list)
        self.events, self.first_event = set(), None
        self.groups, self.postings = {}, defaultdict(lambda: defaultdict(Decimal))
        self.entries = []  # (books, fields)
        self.void_rows = None
        self.handed_off = {}
        self.checkpoints = []  # (record of the month, row, checkpoint or why it is malformed)
        self.checkpoint = {}  # those, by number
        self.ranges, self.entry_ranges = defaultdict(list), []
        self.counts = Counter()
        self.wrong = defaultdict(Findings)
        self.names = check("layout", self._layout, True)
        self.manifest = check("manifest", self._manifest, True)
        check("records", self._records, True)
        if not self.records:
            raise Unusable("this pack has no seal, so there is nothing to check")
        self.first = next(iter(self.records.values()))
        self.from_the_start = self.first.previous is None
        check("files", self._files, True)
        check("tables", self._tables, True)

    def is_open_at_end(self):
        last = self.manifest.months[-1]
        return last["seal"] is None or last["month"] < self.manifest.last

    def _layout(self, problem):
        names = scan(self.folder, problem)
        return "%d files" % len(names), names

    def _manifest(self, _):
        manifest = Manifest(self.folder)
        return "%s, %s to %s, %s" % (manifest.kind, manifest.first, manifest.last, manifest.installation), manifest

    def _records(self, problem):
        for each in self.manifest.months:
            self._record(problem, each, "sealed", "seal", SealRecord, self.records)
            self._record(problem, each, "books", "books_seal", BooksRecord, self.books)
        first = next(iter(self.records.values()), None)
        if first and first.previous and first.previous[0] >= self.manifest.first:
            problem("%s was sealed and is not in the pack" % first.previous[0])
        return "%s of months, %d of books" % (many(len(self.records), "seal"), len(self.books)), None

    def _record(self, problem, stated, folder, key, read, into):
        month = stated["month"]
        if stated[key] is None:
            return
        place = "%s/%s/record.txt" % (folder, month)
        if place not in self.names:
            raise Malformed(place + ": is missing")
        record = read(read_small(self.folder, place), place)
        if record.seal != stated[key]:
            problem("%s: its seal is %s, not %s" % (place, record.seal, stated[key]))
        if record.month != month:
            problem("%s: it is for %s" % (place, record.month))
        if record.installation != self.manifest.installation:
            problem("%s: it belongs to the installation %s" % (place, record.installation))
        if folder == "sealed" and (record.previous[0] if record.previous else None) != stated["previous"]:
            problem("%s: the month before it is not %s" % (place, stated["previous"]))
        into[month] = record

    def _files(self, problem):
        expected = {"README.txt", "dictionary.csv", *self.manifest.data}
        parquet = {name.partition(".")[0] + ".parquet" for name in self.manifest.data if name.partition(".")[2] in FORMATS}
        if parquet & {*self.names, *self.manifest.files}:
            expected |= parquet
            for name in self.manifest.data:
                beside = self.manifest.files.get(name.partition(".")[0] + ".parquet")
                if beside and name in self.manifest.files and beside["rows"] != self.manifest.files[name]["rows"]:
                    problem("the manifest gives %s and its .parquet different numbers of rows" % name)
        for month, record in self.records.items():
            tables = [*record.tables, *(["ledger_rows"] if self.manifest.kind == "ledger" else [])]
            expected |= {"sealed/%s/record.txt" % month, *("sealed/%s/%s.tsv" % (month, each) for each in tables)}
        for month in self.books:
            expected |= {"books/%s/%s" % (month, each) for each in ("record.txt", "entries.tsv", "accounts.tsv")}
        there, listed = set(self.names) - {"manifest.json"}, set(self.manifest.files)
        # Each record can have signatures and a time stamp.
        beside = {each[:-3] + end for each in expected if each.endswith("/record.txt") for end in ("sig", "tsr")}
        expected |= beside & (there | listed)
        for name in sorted(expected - there):
            problem(name + " is missing")
        for name in sorted(expected - listed):
            problem(name + " is not in the manifest")
        for name in sorted((there | listed) - expected):
            problem(name + " is not covered by any record")
        for name in sorted(expected & there & listed):
            stated = self.manifest.files[name]
            path = os.path.join(self.folder, name)
            digest = hashlib.sha256()
            same = os.stat(path).st_size == stated["bytes"]
            if same:
                with open(path, "rb") as file:
                    for piece in iter(lambda: file.read(1 << 20), b""):
                        digest.update(piece)
            if not same or digest.hexdigest() != stated["sha256"]:
                problem(name + " is not the file that the manifest names")
        return "%d files as in the manifest" % len(self.manifest.files), None

    def _tables(self, _):
        interpreted = {**COLUMNS, "audit_events": EVENTS_OF_KIND.get(self.manifest.kind, RESUMPTION)}
        for record in self.records.values():
            self._checkpoints(record)
        for record in self.records.values():
            seen = set()
            for table in sorted(record.tables, key=lambda each: (each != "audit_events", each)):
                self._facts(record, table, interpreted.get(table), seen)
            if self.manifest.kind == "ledger":
                self._ledger_rows(record)
        for books in self.books.values():
            self._entries(books)
            self._accounts(books)
        return "%s, %s" % (many(self.counts["facts"], "fact"), many(self.counts["rows"], "row")), None

    def _count(self, table, expected, problem):
        stated = self.manifest.files[table.name]
        if table.rows != stated["rows"]:
            raise Malformed("%s: it has %d rows, and others in the manifest" % (table.name, table.rows))
        if table.rows != expected[0]:
            problem("%s: %d rows where %d were sealed" % (table.name, table.rows, expected[0]))
        if expected[1] is not None and stated["sha256"] != expected[1]:
            problem(table.name + " is not what was sealed")

    def _facts(self, record, name, interpreted, seen):
        table = Table(self.folder, "sealed/%s/%s.tsv" % (record.month, name))
        problem = self.wrong["seals"]
        columns = table.columns
        if columns[0] != "fact_id":
            raise Malformed(table.name + ": its first column is not fact_id")
        event_at = columns.index("event_id") if "event_id" in columns else 0
        dated_at = columns.index("entry_on") if "entry_on" in columns else 0
        places = table.places(interpreted) if interpreted else []
        forms = check_forms(list(zip(places, interpreted or [])), table.name, NULLABLE.get(name, ()))
        header = "\t".join(columns).encode()
        before, leaves, parts = 0, MerkleRoot(header), RangesOf(self.ranges[record.month])
        for number, fields, line in table:
            leaf = leaf_of(line)
            leaves.add_leaf(leaf)
            if fields[0] is None or not is_number(fields[0]):
                raise Malformed("%s: row %d: fact_id is not a number" % (table.name, number))
            fact = int(fields[0])
            if fact <= before:
                problem("%s: fact %d is out of order" % (table.name, fact))
            if not record.first <= fact <= record.last:
                problem("%s: fact %d is outside of its record" % (table.name, fact))
            if fact in seen:
                problem("%s: fact %d is in another table too" % (table.name, fact))
            seen.add(fact)
            parts.add(fact, leaf, name, header)
            before = fact
            if dated_at and fields[dated_at] is not None:
                self._dated(table.name, fact, fields[dated_at])
            if event_at and fields[event_at] is not None:
                self._event(table.name, name, fact, fields[event_at])
            if places:
                forms(number, fields)
                row = {column: fields[at] for column, at in zip(interpreted, places)}
                row["sealed_in"] = record.month
                if name in DECIDING or name == "audit_events":
                    row["fact"] = fact
                if interpreted is RESUMPTION and not is_needed(row):
                    if self.manifest.kind != "payments":
                        continue
                    del row["details"]
                self.facts[name].append(row)
        expected, root = record.tables[name]
        self._count(table, (expected, None), problem)
        if leaves.root() != root:
            problem(table.name + " is not what was sealed")
        self.counts["facts"] += table.rows

    def _checkpoints(self, record):
        """Reads the facts and rows that each checkpoint covers. Malformed ones are left to their check."""
        if "checkpoints" not in record.tables:
            return
        table = Table(self.folder, "sealed/%s/checkpoints.tsv" % record.month)
        at = table.places(COLUMNS["checkpoints"])
        for number, fields, _ in table:
            row = dict(zip(COLUMNS["checkpoints"], (fields[each] for each in at)))
            try:
                checkpoint = Checkpoint(row["record"] or "", "%s: row %d" % (table.name, number))
            except Malformed as error:
                checkpoint = error
            self.checkpoints.append((record, row, checkpoint))
            if isinstance(checkpoint, Checkpoint):
                self.ranges[record.month].append((checkpoint.facts, checkpoint.found))
                self.entry_ranges.append((checkpoint.entries, checkpoint.found_rows))

    def _event(self, place, table, fact, event):
        if table == "audit_events":
            self.events.add(event)
            if is_number(event) and (self.first_event is None or int(event) < self.first_event):
                self.first_event = int(event)
        elif event not in self.events:
            older = is_number(event) and self.first_event is not None and int(event) < self.first_event
            if self.from_the_start or not older:
                self.wrong["seals"]("%s: fact %d names event %s, which does not exist" % (place, fact, event))

    def _dated(self, place, fact, day):
        for books in self.books.values():
            if day[:7] <= books.month:
                if fact > books.facts_to:
                    self.wrong["books"]("%s: fact %d is dated %s, after those books closed" % (place, fact, day))
                return

    def _ledger_rows(self, record):
        table = Table(self.folder, "sealed/%s/ledger_rows.tsv" % record.month)
        problem = self.wrong["rows"]
        if table.columns != record.columns:
            raise Malformed(table.name + ": its columns are not those of the record")
        places = table.places(ROW_COLUMNS)[:11]
        forms = check_forms(list(enumerate(table.columns)), table.name)
        totals, leaves, before, parts = {}, MerkleRoot(), 0, RangesOf(self.entry_ranges)
        principal = record.month in self.books and self.books[record.month].we_are == "principal"
        for number, fields, line in table:
            leaf = leaf_of(line)
            leaves.add_leaf(leaf)
            values = [fields[at] for at in places]
            if None in values:
                raise Malformed("%s: row %d has a NULL where none is allowed" % (table.name, number))
            forms(number, fields)
            entry, posted, partner, currency, arrangement, policy, kind, month = values[:8]
            if not is_number(entry):
                raise Malformed("%s: row %d: entry_id is not a number" % (table.name, number))
            price, cut, share = map(Decimal, values[8:])
            if int(entry) <= before:
                problem("%s: row %s is out of order" % (table.name, entry))
            before = int(entry)
            parts.add(before, leaf, posted)
            if price != cut + share:
                problem("%s: row %s does not add up" % (table.name, entry))
            if posted != record.month and (record.previous or posted > record.month):
                problem("%s: row %s was posted to %s" % (table.name, entry, posted))
            for sums, key in (
                (totals, currency),
                (self.groups, (partner, record.month, currency, arrangement, policy, kind, month)),
            ):
                old = sums.get(key)
                sums[key] = (
                    [old[0] + price, old[1] + cut, old[2] + share, old[3] + 1] if old else [price, cut, share, 1]
                )
            owed = "unbilled" if arrangement == "invoicing" else "processor"
            own = self.postings[record.month]
            own["assets:receivable:%s:%s" % (owed, partner), currency] += share
            if principal:
                own["expenses:partner-cut:" + partner, currency] += cut
            own["income:sales:" + policy, currency] -= price if principal else share
        self._count(table, (record.rows, None), self.wrong["seals"])
        if leaves.root() != record.root:
            self.wrong["seals"](table.name + " is not what was sealed")
        for currency in sorted(set(totals) | set(record.totals)):
            if totals.get(currency, [None])[:3] != record.totals.get(currency):
                problem("%s: the rows in %s do not add up to the total of the record" % (table.name, currency))
        self.counts["rows"] += table.rows

    def _books_table(self, books, name, columns, nullable=()):
        table = Table(self.folder, "books/%s/%s.tsv" % (books.month, name))
        if table.columns != columns:
            raise Malformed("%s: its columns are not %s" % (table.name, ", ".join(columns)))
        forms = check_forms(list(enumerate(columns)), table.name)
        for number, fields, _ in table:
            if any(field is None and column not in nullable for field, column in zip(fields, columns)):
                raise Malformed("%s: row %d has a NULL" % (table.name, number))
            forms(number, fields)
            yield table.name, fields
        self._count(table, books.tables[name], self.wrong["books"])
        self.counts[name] += table.rows

    def _entries(self, books):
        books.moved = defaultdict(Decimal)
        for place, fields in self._books_table(books, "entries", ENTRY, ("document", "reference")):
            fact, fact_id, entry_on, _, debit, credit, currency, amount = fields[:8]
            month = entry_on[:7]
            if month > books.month or (month < books.month and books.previous):
                self.wrong["books"]("%s: %s %s is dated %s" % (place, fact, fact_id, entry_on))
            books.moved[debit, currency] += Decimal(amount)
            books.moved[credit, currency] -= Decimal(amount)
            self.entries.append((books, fields))

    def _accounts(self, books):
        books.accounts = {}
        problem = self.wrong["books"]
        for place, (control, account, currency, amount) in self._books_table(books, "accounts", ACCOUNT):
            if (account, currency) in books.accounts:
                problem("%s: %s in %s occurs twice" % (place, account, currency))
            if account != control and not account.startswith(control + ":"):
                problem("%s: %s is not in %s" % (place, account, control))
            if amount == "0":
                problem("%s: the balance of %s in %s is zero" % (place, account, currency))
            books.accounts[account, currency] = (control, Decimal(amount))


def leaf_of(line):
    return hashlib.sha256(b"\0" + line).digest()


class MerkleRoot:
    """The root of RFC 9162, 2.1.1, from leaves one by one: the stack holds complete subtrees, larger ones below."""

    def __init__(self, *lines):
        """`lines` are leaves that are not facts: a header."""
        self.stack, self.size = [], -len(lines)
        for line in lines:
            self.add(line)

    def add(self, line):
        self.add_leaf(leaf_of(line))

    def add_leaf(self, node):
        size = 1
        self.size += 1
        while self.stack and self.stack[-1][0] == size:
            _, left = self.stack.pop()
            size, node = size * 2, hashlib.sha256(b"\1" + left + node).digest()
        self.stack.append((size, node))

    def root(self):
        if not self.stack:
            return sha256(b"")
        node = self.stack[-1][1]
        for _, left in reversed(self.stack[:-1]):
            node = hashlib.sha256(b"\1" + left + node).digest()
        return node.hex()


class RangesOf:
    """Collects items in ascending order into ascending ranges of numbers."""

    def __init__(self, ranges):
        self.ranges = iter(ranges)
        self.range, self.found = next(self.ranges, (None, None))

    def add(self, number, leaf, name, *header):
        while self.range and number > self.range[1]:
            self.range, self.found = next(self.ranges, (None, None))
        if self.range and number >= self.range[0]:
            if name not in self.found:
                self.found[name] = MerkleRoot(*header)
            self.found[name].add_leaf(leaf)


# --- Signatures: Ed25519 of RFC 8032, and signed notes --------------------------------------------------------------------

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
KEY_NAME = r"[!-*,-~]{1,100}"


def add_points(one, other):
    """Points as (X, Y, Z, T) with x = X/Z, y = Y/Z, xy = T/Z."""
    a, b = (one[1] - one[0]) * (other[1] - other[0]) % P, (one[1] + one[0]) * (other[1] + other[0]) % P
    c, d = 2 * one[3] * other[3] * D % P, 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def point_of(data):
    """The point that 32 bytes encode; None if they encode none."""
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= P:
        return None
    u, v = y * y - 1, D * y * y + 1
    x = u * v**3 * pow(u * v**7 % P, (P - 5) // 8, P) % P
    if (v * x * x - u) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (v * x * x - u) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signature(public, message, signature):
    point, s = point_of(public), int.from_bytes(signature[32:], "little")
    if point is None or s >= L:
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    minus = (P - point[0], point[1], 1, P - point[3])
    terms, sum_ = {1: BASE, 2: minus, 3: add_points(BASE, minus)}, (0, 1, 1, 0)
    for at in range(252, -1, -1):  # [S]B - [k]A
        sum_ = add_points(sum_, sum_)
        both = (s >> at & 1) + 2 * (k >> at & 1)
        sum_ = add_points(sum_, terms[both]) if both else sum_
    inverse = pow(sum_[2], P - 2, P)
    x, y = sum_[0] * inverse % P, sum_[1] * inverse % P
    return signature[:32] == (y | (x & 1) << 255).to_bytes(32, "little")


def from_base64(text, length):
    """The bytes, if the text is their one Base64; else None."""
    try:
        data = base64.b64decode(text.encode(), validate=True)
    except ValueError:
        return None
    return data if len(data) == length and base64.b64encode(data).decode() == text else None


class Key(namedtuple("Key", "name public")):
    @property
    def id(self):
        return hashlib.sha256(self.name.encode() + b"\n\1" + self.public).digest()[:4]

    def __str__(self):
        return "%s+%s+%s" % (self.name, self.id.hex(), base64.b64encode(b"\1" + self.public).decode())


def parse_key(text):
    name, plus, rest = text.partition("+")
    data = from_base64(rest[9:], 33)
    if data and data[0] == 1 and re.fullmatch(KEY_NAME, name):
        key = Key(name, data[1:])
        if str(key) == text:
            return key
    raise Unusable("'%s' is not a verifier key: NAME+8 digits+Base64" % text)


def parse_signatures(lines, place):
    """(name of the key, its id, signature) of each signature line."""
    signatures = []
    for line in lines:
        found = re.fullmatch("\u2014 (%s) ([A-Za-z0-9+/]+=*)" % KEY_NAME, line)
        data = from_base64(found.group(2), 68) if found else None
        if data is None:
            raise Malformed(place + ": has a line that is not a signature")
        signatures.append((found.group(1), data[:4], data[4:]))
    if not 1 <= len(signatures) <= 16 or len({each[:2] for each in signatures}) != len(signatures):
        raise Malformed(place + ": does not have 1 to 16 signatures by different keys")
    return signatures


def count_valid(keys, text, signatures, place, problem):
    """The number of lines by one of the keys, which must be valid."""
    by = [(key, each[2]) for each in signatures for key in keys if (key.name, key.id) == each[:2]]
    for key, signature in by:
        if not is_signature(key.public, text.encode(), signature):
            problem("%s: the signature of %s is not valid" % (place, key.name))
    return len(by)


def all_records(pack):
    """((kind, name), record, its path without the extension) of every record."""
    for month, record in pack.records.items():
        yield ("month", month), record, "sealed/%s/record." % month
    for month, record in pack.books.items():
        yield ("books", month), record, "books/%s/record." % month
    for _, _, record in pack.checkpoints:
        if isinstance(record, Checkpoint):
            yield ("checkpoint", record.number), record, None


def rows_by_record(pack, table, problem):
    rows = {}
    for row in pack.facts[table]:
        key = (row["kind"], row["name"])
        if key in rows:
            problem("%s: %s %s occurs twice" % (table, *key))
        if row["kind"] not in ("month", "books", "checkpoint"):
            problem("%s: the kind %s is not known" % (table, row["kind"]))
        rows[key] = row
    return rows


def check_signatures(pack, keys, problem):
    lines, names = {}, set(pack.names)
    for key, _, place in all_records(pack):
        if place and place + "sig" in names:
            name = place + "sig"
            text = read_small(pack.folder, name)
            if not text.endswith("\n"):
                raise Malformed(name + ": its last line does not end")
            lines[key] = parse_signatures(text[:-1].split("\n"), name)
            if len(lines[key]) != pack.manifest.files[name]["rows"]:
                problem(name + ": the manifest gives another number of lines")
    rows, known = rows_by_record(pack, "seal_signatures", problem), {}
    for key, row in rows.items():
        public, signature = from_base64(row["public_key"] or "", 32), from_base64(row["signature"] or "", 64)
        if public is None or signature is None or not re.fullmatch(KEY_NAME, row["key_name"] or ""):
            raise Malformed("seal_signatures: that of %s %s does not have its form" % key)
        rows[key] = (Key(row["key_name"], public), signature, row["seal"])
        known[str(rows[key][0])] = None
    for key, record, place in all_records(pack):
        what = "%s %s" % key
        if key in rows:
            by, signature, seal = rows[key]
            if seal != record.seal:
                problem("the signature of %s covers %s" % (what, seal))
            if not is_signature(by.public, record.text.encode(), signature):
                problem("the signature of %s is not valid" % what)
            if place and (by.name, by.id, signature) not in lines.get(key, ()):
                problem("%ssig does not have the signature that was recorded" % place)
            if place is None:
                lines[key] = [(by.name, by.id, signature)]
        if keys and not count_valid(keys, record.text, lines.get(key, ()), what, problem):
            problem("%s is not signed by a key that you hold" % what)
    if not keys:
        problem.notes.append("signatures were not compared with a key that you hold (--key). Here they are by:")
        problem.notes += ["  " + key for key in known]
    return "%d records signed" % len(lines), None


def check_time_stamps(pack, problem):
    rows, stamped, names = rows_by_record(pack, "seal_time_stamps", problem), 0, set(pack.names)
    for key, record, place in all_records(pack):
        data = None
        if place and place + "tsr" in names:
            name = place + "tsr"
            stamped += 1
            with open(os.path.join(pack.folder, name), "rb") as file:
                data = file.read((1 << 16) + 1)
            if not is_der_sequence(data):
                raise Malformed(name + ": is not one DER sequence")
            if b"\4\x20" + bytes.fromhex(record.seal) not in data:
                problem(name + ": does not contain the seal of its record")
            if pack.manifest.files[name]["rows"] != 1:
                problem(name + ": the manifest gives another number of rows")
        if key in rows:
            if rows[key]["seal"] != record.seal:
                problem("the time stamp of %s %s covers %s" % (*key, rows[key]["seal"]))
            if place and (data is None or sha256(data) != rows[key]["response_sha256"]):
                problem("%stsr is not the time stamp that was recorded" % place)
    problem.notes.append(
        "%d records have a time stamp: openssl ts -verify -data record.txt -in record.tsr -CAfile … proves the authority" % stamped
    )
    return "%d time stamps" % stamped, None


def is_der_sequence(data):
    if not 2 <= len(data) <= 1 << 16 or data[0] != 0x30:
        return False
    long = data[1] - 128 if data[1] > 128 else 0
    length = int.from_bytes(data[2 : 2 + long], "big") if long else data[1]
    return data[1] != 128 and length == len(data) - 2 - long


# --- Checks of the sealed evidence ------------------------------------------------------------------------------------


def check_seals(pack, problem):
    problem.add(pack.wrong["seals"])
    records = list(pack.records.values())
    for before, record in zip(records, records[1:]):
        if record.previous[1] != before.seal:
            problem("%s was sealed after %s, not after %s" % (record.month, record.previous[1], before.seal))
        if record.first != before.last + 1:
            problem("%s: its facts begin at %d, after %d" % (record.month, record.first, before.last))
    of = many(len(records), "month"), many(pack.counts["facts"], "fact"), many(pack.counts["rows"], "row")
    return ", ".join(of), None


def check_checkpoints(pack, problem):
    before = (None, None)
    others, last_month = 0, None
    for record, row, checkpoint in pack.checkpoints:
        if isinstance(checkpoint, Malformed):
            raise checkpoint
        pack.checkpoint[checkpoint.number] = checkpoint
        earlier, number = before, int(checkpoint.number)
        before = (record, checkpoint)
        known = {month for month in checkpoint.rows.keys() | checkpoint.found_rows.keys() if is_known_month(pack, month)}
        others += len(checkpoint.rows.keys() - known)
        first_entry = earlier[1].entries[1] + 1 if earlier[1] else 1 if number == 1 else checkpoint.entries[0]
        first_fact = earlier[1].facts[1] + 1 if earlier[0] is record else record.first
        stated = (row["seal"], row["checkpoint_number"], row["facts_to"], row["entries_to"], sealed_time(row["taken_at"] or ""))
        last = (str(checkpoint.facts[1]), str(checkpoint.entries[1]), plain_time(checkpoint.taken_at))
        for right, what in (
            (stated == (checkpoint.seal, checkpoint.number, *last), "does not match its row"),
            (checkpoint.installation == pack.manifest.installation, "belongs to another installation"),
            ((number == 1) == (checkpoint.previous is None), "is not the first"),
            (not checkpoint.previous or int(checkpoint.previous[0]) == number - 1, "does not follow its predecessor"),
            (not earlier[1] or checkpoint.previous == (earlier[1].number, earlier[1].seal), "does not follow its predecessor"),
            (earlier[1] or number == 1 or not pack.from_the_start, "is not the first"),
            (checkpoint.sealed_after == record.previous, "names another seal of the previous month"),
            (not earlier[1] or earlier[1].taken_at <= checkpoint.taken_at, "was taken before its predecessor"),
            (checkpoint.facts[0] == first_fact, "has facts that begin at %d" % checkpoint.facts[0]),
            (is_number(row["fact_id"] or "") and checkpoint.facts[1] < int(row["fact_id"]), "has facts after its own"),
            (checkpoint.entries[0] == first_entry, "has rows that begin at %d" % checkpoint.entries[0]),
            (checkpoint.columns == record.columns, "has other columns of rows"),
            (totals_of(checkpoint.found) == checkpoint.tables, "does not have the facts of %s" % record.month),
            (
                pack.manifest.kind != "ledger"
                or all(totals_of(checkpoint.found_rows).get(month) == checkpoint.rows.get(month) for month in known),
                "does not have the rows",
            ),
        ):
            if not right:
                problem("checkpoint %s %s" % (checkpoint.number, what))
    if others or pack.manifest.kind != "ledger":
        problem.notes.append("rows of checkpoints whose months are not in this pack were not recomputed")
    return many(len(pack.checkpoints), "checkpoint"), None


def is_known_month(pack, month):
    return month in pack.records or (pack.from_the_start and month < pack.first.month)


def totals_of(trees):
    return {name: (tree.size, tree.root()) for name, tree in trees.items()}


def check_rows(pack, problem):
    problem.add(pack.wrong["rows"])
    return many(pack.counts["rows"], "row") + ": each adds up, totals as sealed", None


def bill_of(row):
    return tuple(row[name] for name in BILL)


def arrange_documents(pack, problem):
    pack.documents, pack.numbers = {}, {}
    for document in pack.facts["documents"]:
        if document["document_id"] in pack.documents:
            problem(document["number"] + ": its document_id occurs twice")
        if document["number"] in pack.numbers:
            problem(document["number"] + " occurs twice")
        pack.documents[document["document_id"]] = pack.numbers[document["number"]] = document
        document.update(lines=[], taxes=[], void=None, pdf=None, replaced_by=None)

    def known(row, what):
        document = pack.documents.get(row["document_id"])
        if document is None and pack.from_the_start:
            problem("document_id %s has %s, but is not a document" % (row["document_id"], what))
        return document

    for line in pack.facts["document_lines"]:
        document = pack.documents.get(line["document_id"])
        if document is None or document["sealed_in"] != line["sealed_in"]:
            problem("a line of document_id %s has no document in %s" % (line["document_id"], line["sealed_in"]))
            continue
        document["lines"].append(line)
        if line["position"] != str(len(document["lines"])):
            problem("%s: line %s is out of order" % (document["number"], line["position"]))
    for tax in pack.facts["document_taxes"]:
        document = pack.documents.get(tax["document_id"])
        if document is None or (document["sealed_in"], document["currency"]) != (tax["sealed_in"], tax["currency"]):
            problem("a tax of document_id %s has no document in %s" % (tax["document_id"], tax["sealed_in"]))
        else:
            document["taxes"].append(tax)
    for void in pack.facts["voids"]:
        document = known(void, "a void")
        if document is None:
            continue
        if document["void"]:
            problem(document["number"] + " is void twice")
        if void["sealed_in"] < document["sealed_in"] or bill_of(void) != bill_of(document):
            problem("the void of %s belongs to another document" % document["number"])
        document["void"] = void
    for pdf in pack.facts["document_pdfs"]:
        document = known(pdf, "a PDF")
        if document is not None and document["pdf"] is not None:
            problem(document["number"] + " has two PDFs")
        elif document is not None:
            document["pdf"] = pdf["sha256"]
    for document in pack.documents.values():
        if document["replaces"] is None:
            continue
        replaced = pack.documents.get(document["replaces"])
        if replaced is None:
            if pack.from_the_start:
                problem("%s replaces document_id %s, which does not exist" % (document["number"], document["replaces"]))
            continue
        if not replaced["void"]:
            problem("%s replaces %s, which is not void" % (document["number"], replaced["number"]))
        if replaced["replaced_by"]:
            problem(replaced["number"] + " is replaced twice")
        replaced["replaced_by"] = document["number"]


def given(fact):
    """The first and last number of a document or of a skipped range."""
    return int(fact.get("first_sequence", fact.get("sequence"))), int(fact.get("last_sequence", fact.get("sequence")))


def numbered(series, sequence):
    return "%s-%s" % (series, str(sequence).rjust(6, "0"))


def check_skipped(pack, problem):
    """The skipped numbers are those in the events of the resumptions."""
    skipped, told = set(), set()
    for skip in pack.facts["skipped_numbers"]:
        first, last = given(skip)
        skipped.add((skip["event_id"], numbered(skip["series"], first), numbered(skip["series"], last)))
    for event in pack.facts["audit_events"]:
        if event["action"] != "ledger.resume":
            continue
        details = parse_json(event["details"] or "{}", "the details of event %s" % event["event_id"])
        ranges = details.get("skipped") if isinstance(details, dict) else None
        for each in ranges if isinstance(ranges, list) else ():
            if isinstance(each, dict):
                told.add((event["event_id"], str(each.get("from")), str(each.get("to"))))
    for event, first, last in sorted(skipped - told):
        problem("%s to %s are skipped, but not in event %s" % (first, last, event))
    for event, first, last in sorted(told - skipped):
        problem("event %s skipped %s to %s, but they are not skipped" % (event, first, last))


DECIDING = ("approval_requests", "approval_decisions", "user_roles", "user_ends")


def is_needed(event):
    action = event["action"] or ""
    return action in ("ledger.resume", "month.close") or action.startswith("approval.") or one_person(event) is not None


def one_person(event):
    """What an event says was done by one person, because no one else could approve it."""
    if '"one_person"' not in (event.get("details") or ""):
        return None
    details = parse_json(event["details"], "the details of event %s" % event["event_id"])
    return details.get("one_person") if isinstance(details, dict) else None


def check_approvals(pack, problem):
    """The decider of a request is not its requester, was an approver, decided in time, and matches its event."""
    requests = {each["request_id"]: each for each in pack.facts["approval_requests"]}
    events = {each["event_id"]: each for each in pack.facts["audit_events"]}
    for each in pack.facts["approval_decisions"]:
        decision, user, asker = each["decision"], each["decided_by"], each["requested_by"]
        request, event = requests.get(each["request_id"]), events.get(each["event_id"])
        what = "request %s: %s by user %s" % (each["request_id"], decision, user)
        if request is None:
            if pack.from_the_start:
                problem("%s: it does not exist" % what)
        elif request["requested_by"] != asker or request["fact"] > each["fact"]:
            problem("%s: user %s had not made it" % (what, asker))
        elif decision == "approve" and each["recorded_at"] >= request["expires_at"]:
            problem("%s: it had expired at %s" % (what, request["expires_at"]))
        if (decision == "withdraw") != (user == asker):
            problem("%s: user %s requested it" % (what, asker))
        details = parse_json((event or {}).get("details") or "{}", "the details of event %s" % each["event_id"])
        asked = details.get("request") if isinstance(details, dict) else None
        said = event and (event["action"], event["user_id"], str(asked))
        if said != ("approval.%s" % decision, user, each["request_id"]):
            problem("%s: event %s differs" % (what, each["event_id"]))
        if decision != "withdraw" and pack.from_the_start and not was_approver(pack, user, each["fact"]):
            problem("%s: not an approver at that time" % what)
    alone = [each for each in pack.facts["audit_events"] if one_person(each) is not None]
    for each in alone if pack.from_the_start else ():
        said = one_person(each)
        partners = said.get("partners") if isinstance(said, dict) else None
        for user in sorted({role["user_id"] for role in pack.facts["user_roles"]} - {each["user_id"]}):
            if was_approver(pack, user, each["fact"], partners):
                problem("event %s (%s) was done alone: user %s could approve it" % (each["event_id"], each["action"], user))
    if alone:
        problem.notes.append("%s of one person: no one else could approve them at that time" % many(len(alone), "event"))
    return many(len(pack.facts["approval_decisions"]), "decision"), None


def note_one_person(pack):
    """Actions without a second person, from the closes of the pack's months."""
    if not pack.manifest.installation.endswith(" production"):
        return
    said = {}
    for event in pack.facts["audit_events"]:
        if event["action"] == "month.close":
            try:
                details = parse_json(event["details"] or "{}", "")
            except Malformed:
                continue
            text = standing(details) if isinstance(details, dict) else None
            if text:
                said.setdefault(text, []).append(event["subject"] or "")
    for text, months in said.items():
        say("note  approvals at the close of %s: %s" % (", ".join(months), text))


def standing(details):
    approvers, of_some = details.get("approvers"), details.get("approvers_of_some")
    if type(approvers) is not int:
        return None
    if approvers == 0 and type(of_some) is int and of_some > 0:
        return "approvers of some partners only: no one can approve for other partners"
    if approvers < 2:
        return "one person: actions are not approved by a second person"
    if details.get("approval_rules") == []:
        return "no rules: %d people could approve, but no action requires it" % approvers
    return None


NOT_ASKED = object()


def was_approver(pack, user, fact, partners=NOT_ASKED):
    """Over these partners; None: the whole ledger. Which partners a request touches is not compared: NOT_ASKED."""
    if any(end["user_id"] == user and end["fact"] < fact for end in pack.facts["user_ends"]):
        return False
    latest = {}
    for each in pack.facts["user_roles"]:
        if each["user_id"] == user and each["role"] == "approver" and each["fact"] < fact:
            latest[each["partner_id"], each["source"]] = each["action"]
    granted = {partner for (partner, _), action in latest.items() if action == "grant"}
    if partners is NOT_ASKED or None in granted:
        return bool(granted)
    return partners is not None and granted.issuperset(partners)


def number_of(document):
    """For an item of an opening, the previous system's number with its revision; otherwise our own."""
    if document["purpose"] != "opening":
        return numbered(document["series"], document["sequence"])
    own, revision = document["opening_number"], document["opening_revision"]
    return own if revision == "1" else "%s~%s" % (own, revision)


def check_openings(pack, problem):
    """The items of an opening add up to its totals, have no lines, and are entered on the day of the cut-over."""
    days = {opening["opening_id"]: opening["cut_over_on"] for opening in pack.facts["openings"]}
    sums = defaultdict(lambda: [0, Decimal(0), Decimal(0), Decimal(0)])

    def add(item, name, place, amount):
        total = sums[item["opening_id"], item["currency"]]
        total[0] += 1
        total[place] += Decimal(amount)
        if days.get(item["opening_id"]) != item["entry_on"]:
            problem(name + " is not entered on the day of its cut-over")

    for document in pack.documents.values():
        number, is_opening = document["number"], document["purpose"] == "opening"
        if is_opening != (document["opening_id"] is not None):
            problem(number + " wrongly has or lacks an opening")
        elif is_opening:
            if document["series"] != "OPENING" or document["lines"] or (document["entries"], document["partner_cut"]) != ("0", "0"):
                problem(number + " was carried over but has lines or entries")
            add(document, number, 1 if document["document"] == "invoice" else 2, document["invoice_amount"])
    for payment in pack.facts["payments"]:
        name, is_opening = "payment %s" % payment["payment_id"], payment["source"] == "opening"
        if is_opening != (payment["opening_id"] is not None):
            problem(name + " wrongly has or lacks an opening")
        elif is_opening:
            add(payment, name, 3, payment["amount"])
    for total in pack.facts["opening_totals"]:
        name = "opening %s in %s" % (total["opening_id"], total["currency"])
        invoices, credits, cash, control = (Decimal(total[each]) for each in ("invoices", "credits", "cash", "control"))
        if sums.pop((total["opening_id"], total["currency"]), None) != [int(total["items"]), invoices, credits, cash]:
            problem(name + " is not the sum of its items")
        if control != invoices - credits - cash:
            problem(name + " does not match its control total")
    for opening, currency in sums:
        problem("opening %s has no total in %s" % (opening, currency))


DIGITS_OF = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(),
    3: "BHD IQD JOD KWD LYD OMR TND".split(),
    4: "CLF UYW".split(),
}


def tax_of(taxable, rate, currency):
    """Rounded once, half away from zero, to the currency's digits."""
    digits = next((digits for digits, codes in DIGITS_OF.items() if currency in codes), 2)
    return (taxable * rate / 100).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def check_taxes(document, problem):
    """Each total of a document's tax covers its lines and is taxed once; together they cover the net amount."""
    number, lines, taxes = document["number"], document["lines"], document["taxes"]
    if not taxes:
        return
    if sum(Decimal(tax["taxable"]) for tax in taxes) != Decimal(document["invoice_amount"]):
        problem(number + ": its taxes do not add up to its net amount")
    # A credit note against an invoice has no lines; what it rounds depends on the others against it.
    if document["purpose"] != "month":
        return
    covered = []
    for tax in taxes:
        positions = tax["line_positions"].split()
        covered += positions
        own = [line for line in lines if line["position"] in positions]
        taxable = Decimal(tax["taxable"])
        if sum(Decimal(line["invoice_amount"]) for line in own) != taxable:
            problem("%s: tax %s does not match its lines" % (number, tax["position"]))
        if tax_of(taxable, Decimal(tax["rate"]), tax["currency"]) != Decimal(tax["tax"]):
            problem("%s: tax %s does not match its rate" % (number, tax["position"]))
    if sorted(covered) != sorted(line["position"] for line in lines):
        problem(number + ": a line has no tax, or two")


def check_documents(pack, problem):
    arrange_documents(pack, problem)
    check_skipped(pack, problem)
    series, billed = defaultdict(list), set()
    pack.bills = defaultdict(list)
    for skip in pack.facts["skipped_numbers"]:
        first, last = given(skip)
        if not 1 <= first <= last:
            problem("%s: %d to %d is not a range of numbers" % (skip["series"], first, last))
        series[skip["series"]].append((first, last))
        problem.notes.append("%s: %d to %d skipped, by event %s" % (skip["series"], first, last, skip["event_id"]))
    for document in pack.documents.values():
        number = document["number"]
        if number != number_of(document):
            problem("%s is number %s of %s" % (number, document["sequence"], document["series"]))
        series[document["series"]].append(given(document))
        check_taxes(document, problem)
        if document["purpose"] != "month":
            continue
        pack.bills[bill_of(document)].append(document)
        header = [Decimal(document[name]) for name in SUMS]
        if header[0] != header[1] + header[2]:
            problem(number + " does not add up")
        sums = [Decimal(0)] * 4
        # A change of tax splits the line of a policy, kind and month.
        whole = defaultdict(lambda: [Decimal(0)] * 3 + [0])
        for line in document["lines"]:
            amounts = [Decimal(line[name]) for name in SUMS] + [int(line["count"])]
            sums = [one + other for one, other in zip(sums, amounts)]
            of = line["policy_id"], line["kind"], line["month"]
            whole[of] = [one + other for one, other in zip(whole[of], amounts)]
        for line in document["lines"]:
            if not pack.groups or document["month"] not in pack.records:
                continue
            key = bill_of(document) + (line["policy_id"], line["kind"], line["month"])
            billed.add(key)
            expected = pack.groups.get(key)
            if expected and document["document"] == "credit_note":
                expected = [-each for each in expected[:3]] + [expected[3]]
            if expected != whole[line["policy_id"], line["kind"], line["month"]]:
                problem("line %s of %s is not the sum of its rows" % (line["position"], number))
        if not document["lines"] or sums != header + [int(document["entries"])]:
            problem(number + " is not the sum of its lines")
    for chain in pack.bills.values():
        live = [document["number"] for document in chain if not document["void"]]
        if len(live) > 1:
            problem("%s bill the same rows" % ", ".join(live))
        if not live:
            problem.notes.append("%s is void, and no sealed document replaces it" % chain[-1]["number"])
    for key in pack.groups.keys() - billed:
        problem("rows of %s in %s in %s are on no document" % key[:3])
    check_openings(pack, problem)
    for name, numbers in series.items():
        numbers.sort()
        first = 1 if pack.from_the_start else numbers[0][0]
        if [start for start, _ in numbers] != [first] + [end + 1 for _, end in numbers[:-1]]:
            problem("%s: its numbers have a gap, or one occurs twice" % name)
    return "%s, %d series" % (many(len(pack.documents), "document"), len(series)), None


OF_ROWS = ("assets:receivable:unbilled", "assets:receivable:processor", "expenses:partner-cut", "income:sales")


def is_of_rows(account):
    return any(account == each or account.startswith(each + ":") for each in OF_ROWS)


def check_books(pack, problem):
    problem.add(pack.wrong["books"])
    before = None
    for month, books in pack.books.items():
        if before:
            if not books.previous or books.previous[1] != before.seal:
                problem("the books of %s did not close after %s" % (month, before.seal))
            if books.facts_to < before.facts_to:
                problem("the books of %s closed before those of %s" % (month, before.month))
        after = pack.records.get(books.sealed_after[0])
        if after and after.seal != books.sealed_after[1]:
            problem("the books of %s name another seal of %s" % (month, after.month))
        upcoming = pack.records.get(following(books.sealed_after[0]))
        if (after and books.facts_to < after.last) or (upcoming and books.facts_to > upcoming.last):
            problem("the books of %s did not close after the seal of %s" % (month, books.sealed_after[0]))
        by_control, by_currency = defaultdict(Decimal), defaultdict(Decimal)
        for (_, currency), (control, amount) in books.accounts.items():
            by_control[control, currency] += amount
            by_currency[currency] += amount
        for key in by_control.keys() | books.balances.keys():
            if by_control.get(key, 0) != books.balances.get(key, 0):
                problem("%s: the accounts of %s %s do not add up to the balance of the record" % (month, *key))
        for currency, amount in by_currency.items():
            if amount:
                problem("%s: debits and credits in %s differ" % (month, currency))
        if before and books.we_are != before.we_are:
            problem("the books of %s have we_are %s, those of %s %s" % (month, books.we_are, before.month, before.we_are))
        if before or not books.previous:
            check_roll_forward(pack, before, books, problem)
        else:
            problem.notes.append("the balances of %s are not added up: the books before it are not in this pack" % month)
        before = books
    check_postings(pack, problem)
    for close in pack.facts["book_closes"]:
        books = pack.books.get(close["month"])
        if books is None and close["month"] in pack.records:
            problem("the books of %s closed but are not in the pack" % close["month"])
        if books and (books.text, books.seal, str(books.facts_to)) != (close["record"], close["seal"], close["facts_to"]):
            problem("the books of %s are not those that were sealed in %s" % (close["month"], close["sealed_in"]))
    for month in pack.records.keys() - pack.books.keys():
        problem.notes.append("the books of %s are open: its entries can still change" % month)
    of = many(len(pack.books), "month"), many(pack.counts["entries"], "entry", "entries"), many(pack.counts["accounts"], "balance")
    return ", ".join(of), None


# --- Posting rules ------------------------------------------------------------------------------------------------------

RECEIVABLE, UNBILLED, DUE_FROM_PROCESSOR = ("assets:receivable:" + each for each in ("billed", "unbilled", "processor"))
CREDIT, UNAPPLIED, ADJUSTMENTS = "liabilities:partner-credit", "liabilities:unapplied", "income:adjustments"
BANK, PROCESSOR, CONVERSION = "assets:bank", "assets:processor", "equity:conversion"
OPENING = "equity:opening-balances"
TAX = "liabilities:tax"
OF_DOCUMENTS = (RECEIVABLE, ADJUSTMENTS, OPENING, UNBILLED, CREDIT, DUE_FROM_PROCESSOR, TAX)
BAD_DEBTS, BANK_CHARGES, FEES = "expenses:bad-debts", "expenses:bank-charges", "expenses:processor-fees"
MONEY_AT = (BANK, PROCESSOR)
# The table of each fact, and the control accounts that it may debit and credit; None is any.
POSTED = {
    "document_issued": ("documents", OF_DOCUMENTS, OF_DOCUMENTS),
    "document_voided": ("voids", OF_DOCUMENTS, OF_DOCUMENTS),
    "credit_applied": ("credit_applications", (CREDIT,), (RECEIVABLE,)),
    "credit_released": ("credit_releases", (RECEIVABLE,), (CREDIT,)),
    "written_off": ("write_offs", (BAD_DEBTS,), (RECEIVABLE,)),
    "write_off_undone": ("write_off_reversals", (RECEIVABLE,), (BAD_DEBTS,)),
    "payment_received": ("payments", (*MONEY_AT, OPENING), (UNAPPLIED,)),
    "payment_assigned": ("payment_assignments", (UNAPPLIED,), (UNAPPLIED,)),
    "payment_applied": ("payment_applications", (UNAPPLIED,), (RECEIVABLE,)),
    "payment_unapplied": ("payment_unapplications", (RECEIVABLE,), (UNAPPLIED,)),
    "small_difference": ("small_differences", (BANK_CHARGES,), (RECEIVABLE,)),
    "small_difference_undone": ("payment_unapplications", (RECEIVABLE,), (BANK_CHARGES,)),
    "payment_reversed": ("payment_reversals", (UNAPPLIED,), None),
    "payment_reinstated": ("payment_reinstatements", MONEY_AT, (UNAPPLIED,)),
    "payout_received": ("payouts", (BANK,), (PROCESSOR,)),
    "payout_settled": ("payout_settlements", (FEES,), (PROCESSOR,)),
    "credit_refunded": ("credit_refunds", (CREDIT,), (BANK,)),
    "credit_refund_returned": ("credit_refund_returns", (BANK,), (CREDIT,)),
    "refund_matched": ("refund_matches", (BANK,), (BANK,)),
    "share_received": ("share_allocations", (PROCESSOR,), (DUE_FROM_PROCESSOR,)),
    "share_reversed": ("share_allocations", (DUE_FROM_PROCESSOR,), (PROCESSOR,)),
    "share_converted": ("share_allocations", (CONVERSION, PROCESSOR), (CONVERSION, PROCESSOR)),
}


class Older(dict):
    """A fact that is older than the pack, and everything derived from it."""

    def __missing__(self, key):
        return self


OLDER = Older()


def account_of(control, detail):
    return OLDER if detail is OLDER else "%s:%s" % (control, detail) if detail else control


def billed_to(document):
    if document is OLDER:
        return OLDER
    is_adjustment = document["purpose"] == "adjustment"
    if document["purpose"] == "opening" and document["document"] == "credit_note":
        return OPENING
    control = RECEIVABLE if document["document"] == "invoice" else ADJUSTMENTS if is_adjustment else UNBILLED
    return account_of(control, document["partner_id"])


def billed_from(document):
    if document is OLDER:
        return OLDER
    if document["purpose"] == "opening" and document["document"] == "invoice":
        return OPENING
    of_processor = document["purpose"] == "missing_shares"
    control = CREDIT if document["document"] == "credit_note" else DUE_FROM_PROCESSOR if of_processor else UNBILLED
    return account_of(control, document["partner_id"])


def money_of(payment, match=None):
    if payment is OLDER:
        return OLDER
    return PROCESSOR if payment["method"] == "link" else account_of(BANK, (match or payment)["account"])


class Facts:
    """The facts of a pack by number."""

    def __init__(self, pack, problem):
        self.pack, self.problem, self.each = pack, problem, pack.facts.__getitem__
        self.index = {table: {row[key]: row for row in pack.facts[table]} for table, key in KEY_OF.items()}
        self.range = {}
        for table, rows in self.index.items():
            if len(rows) != len(pack.facts[table]):
                problem("%s: a %s occurs twice" % (table, KEY_OF[table]))
            numbers = [int(number) for number in rows]
            self.range[table] = (min(numbers), max(numbers)) if numbers else None
        self.paid = defaultdict(Decimal)
        for row in pack.facts["share_payments"]:
            self.paid[row["share_allocation_id"]] += Decimal(row["amount"])
        self.matches = {}
        for row in pack.facts["refund_matches"]:
            refund = (row["credit_refund_id"], row["payment_reversal_id"])
            if refund in self.matches or refund.count(None) != 1:
                problem("refund_match_id %s does not match one refund, once" % row["refund_match_id"])
            self.matches[refund] = row

    def is_older(self, table, number):
        """Whether a fact that is not in the pack may be older than it."""
        within = self.range[table]
        return not self.pack.from_the_start and (within is None or int(number) < within[0])

    def of(self, row, column, table="documents"):
        """The fact that a column names."""
        number = row[column]
        if number is OLDER:
            return OLDER
        found = self.index[table].get(number)
        if found is None and not self.is_older(table, number):
            self.problem("a fact names %s %s, which is not in %s" % (column, number, table))
        return OLDER if found is None else found

    def match(self, refund, credit_refund_id, payment_reversal_id):
        return self.matches.get((credit_refund_id, payment_reversal_id), OLDER if refund is OLDER else None)

    def cannot_be(self, books, entry):
        """Why an entry without a fact in the pack cannot belong to an older or later fact; None if it can."""
        fact, number, _, _, debit, credit, _, amount = entry[:8]
        if fact not in POSTED or not is_number(number):
            return "is not an entry of a fact"
        table, debits, credits = POSTED[fact]
        # The taxes of a document older than the pack are unknown, and so are those of its void.
        untold = fact == "document_voided" and number not in self.index["documents"] and self.is_older("documents", number)
        if number in self.index[table] and not (untold and any(side.startswith(TAX + ":") for side in (debit, credit))):
            return "does not follow from its fact"
        of = NUMBERED_AFTER.get(table, table)
        older = number not in self.index[of] and self.is_older(of, number)
        last = next(reversed(list(self.pack.records.values()))).last
        later = books.facts_to > last and (of != table or self.range[of] is None or int(number) > self.range[of][1])
        if not older and not later and number not in self.index[table]:
            return "belongs to a fact that is not sealed"
        for side, controls in ((debit, debits), (credit, credits)):
            if controls and not any(side == each or side.startswith(each + ":") for each in controls):
                return "is posted to %s" % side
        return None if Decimal(amount) > 0 else "has %s" % amount


def of_document(document, debit, credit):
    """The debit, credit, currency, amount, document and reference of its net amount and of each tax. With tax, one of them can have the opposite sign of the total."""
    if document is OLDER:
        yield debit, credit, OLDER, OLDER, OLDER, None
        return
    if document["document"] == "statement":
        return
    own = account_of(RECEIVABLE if document["document"] == "invoice" else CREDIT, document["partner_id"])
    amounts = [(document["invoice_amount"], debit, credit)]
    for tax in document["taxes"]:
        detail = ":".join(each for each in (tax["country"], tax["category"], tax["rate"]) if each)
        payable = account_of(TAX, detail)
        amounts.append((tax["tax"], *((own, payable) if debit == own else (payable, own))))
    for amount, to, source in amounts:
        if amount != "0":
            sides = (source, to) if amount.startswith("-") else (to, source)
            yield (*sides, document["currency"], amount.replace("-", ""), document["number"], None)


def derive_entries(facts):
    """The posting rules: fact, its row, dated_on, debit, credit, currency, amount, document, reference."""
    of, each = facts.of, facts.each
    for d in each("documents"):
        for entry in of_document(d, billed_to(d), billed_from(d)):
            yield ("document_issued", d, d["issued_on"], *entry)
    for own in each("voids"):
        d = of(own, "document_id")
        for entry in of_document(d, billed_from(d), billed_to(d)):
            yield ("document_voided", own, own["voided_on"], *entry)
    for table in ("credit_applications", "credit_releases"):
        for own in each(table):
            a = own if table == "credit_applications" else of(own, "credit_application_id", "credit_applications")
            d, note = of(a, "invoice_id"), of(a, "credit_note_id")
            credit, billed = account_of(CREDIT, d["partner_id"]), account_of(RECEIVABLE, d["partner_id"])
            money = d["currency"], a["amount"], d["number"], note["number"]
            if a is own:
                yield ("credit_applied", own, own["applied_on"], credit, billed, *money)
            else:
                yield ("credit_released", own, own["released_on"], billed, credit, *money)
    for table in ("write_offs", "write_off_reversals"):
        for own in each(table):
            w = own if table == "write_offs" else of(own, "write_off_id", "write_offs")
            d = of(w, "document_id")
            billed, money = account_of(RECEIVABLE, d["partner_id"]), (d["currency"], w["amount"], d["number"], None)
            if w is own:
                yield ("written_off", own, own["written_off_on"], BAD_DEBTS, billed, *money)
            else:
                yield ("write_off_undone", own, own["reversed_on"], billed, BAD_DEBTS, *money)
    for p in each("payments"):
        money = p["currency"], p["amount"], None, p["reference"]
        debit = OPENING if p["source"] == "opening" else money_of(p)
        yield ("payment_received", p, p["received_on"], debit, account_of(UNAPPLIED, p["partner_id"]), *money)
    for own in each("payment_assignments"):
        p = of(own, "payment_id", "payments")
        if Decimal(own["amount"]) > 0:
            debit, credit = (account_of(UNAPPLIED, own[name]) for name in ("from_partner_id", "partner_id"))
            money = p["currency"], own["amount"], None, p["reference"]
            yield ("payment_assigned", own, own["assigned_on"], debit, credit, *money)
    yield from derive_applications(facts)
    for own in each("payment_reversals"):
        p = of(own, "payment_id", "payments")
        never_came = p["source"] == "opening" and own["kind"] in ("mistake", "duplicate")
        credit = own["booked_to"] if own["kind"] == "other" else OPENING if never_came else money_of(p)
        money = own["currency"], own["amount"], None, p["reference"]
        yield ("payment_reversed", own, own["reversed_on"], account_of(UNAPPLIED, own["partner_id"]), credit, *money)
    for own in each("payment_reinstatements"):
        r = of(own, "payment_reversal_id", "payment_reversals")
        p, m = of(r, "payment_id", "payments"), facts.match(r, None, own["payment_reversal_id"])
        debit = OLDER if p is OLDER else money_of(p, p if m is None else {"account": m["account"]})
        money = r["currency"], r["amount"], None, p["reference"]
        yield ("payment_reinstated", own, own["reinstated_on"], debit, account_of(UNAPPLIED, own["partner_id"]), *money)
    for own in each("payouts"):
        money = own["currency"], own["amount"], None, of(own, "bank_line_id", "bank_lines")["bank_reference"]
        yield ("payout_received", own, own["received_on"], account_of(BANK, own["account"]), PROCESSOR, *money)
    for own in each("payout_settlements"):
        o = of(own, "payout_id", "payouts")
        line = of(o, "bank_line_id", "bank_lines")
        if Decimal(own["fees"]) > 0:
            money = o["currency"], own["fees"], None, line["bank_reference"]
            yield ("payout_settled", own, own["entry_on"], FEES, PROCESSOR, *money)
    yield from derive_refunds(facts)
    yield from derive_shares(facts)


def derive_applications(facts):
    of, each = facts.of, facts.each
    for a in each("payment_applications"):
        d, p = of(a, "document_id"), of(a, "payment_id", "payments")
        debit, credit = account_of(UNAPPLIED, a["partner_id"]), account_of(RECEIVABLE, a["partner_id"])
        money = a["currency"], a["amount"], d["number"], p["reference"]
        yield ("payment_applied", a, a["applied_on"], debit, credit, *money)
    for s in each("small_differences"):
        a, d = of(s, "payment_application_id", "payment_applications"), of(s, "document_id")
        money = s["currency"], s["amount"], d["number"], of(a, "payment_id", "payments")["reference"]
        yield ("small_difference", s, a["applied_on"], BANK_CHARGES, account_of(RECEIVABLE, a["partner_id"]), *money)
    for own in each("payment_unapplications"):
        a = of(own, "payment_application_id", "payment_applications")
        d, p, day = of(a, "document_id"), of(a, "payment_id", "payments"), own["unapplied_on"]
        debit, credit = account_of(RECEIVABLE, a["partner_id"]), account_of(UNAPPLIED, a["partner_id"])
        money = a["currency"], a["amount"], d["number"], p["reference"]
        yield ("payment_unapplied", own, day, debit, credit, *money)
        small = facts.index["small_differences"].get(own["payment_application_id"], OLDER if a is OLDER else None)
        if small is not None:
            money = small["currency"], small["amount"], of(small, "document_id")["number"], p["reference"]
            yield ("small_difference_undone", own, day, debit, BANK_CHARGES, *money)


def derive_refunds(facts):
    of, each = facts.of, facts.each
    for f in each("credit_refunds"):
        debit, credit = account_of(CREDIT, f["partner_id"]), account_of(BANK, f["account"])
        money = f["currency"], f["amount"], of(f, "document_id")["number"], f["reference"]
        yield ("credit_refunded", f, f["refunded_on"], debit, credit, *money)
    for own in each("credit_refund_returns"):
        f = of(own, "credit_refund_id", "credit_refunds")
        m = facts.match(f, own["credit_refund_id"], None)
        debit, credit = account_of(BANK, (f if m is None else m)["account"]), account_of(CREDIT, f["partner_id"])
        money = f["currency"], f["amount"], of(f, "document_id")["number"], f["reference"]
        yield ("credit_refund_returned", own, own["returned_on"], debit, credit, *money)
    for own in each("refund_matches"):
        if own["credit_refund_id"] is not None:
            source = of(own, "credit_refund_id", "credit_refunds")
            number = of(source, "document_id")["number"]
        else:
            source = of(of(own, "payment_reversal_id", "payment_reversals"), "payment_id", "payments")
            number = None
        if source["account"] != own["account"]:
            debit, credit = account_of(BANK, source["account"]), account_of(BANK, own["account"])
            money = own["currency"], own["amount"], number, source["reference"]
            yield ("refund_matched", own, own["paid_on"], debit, credit, *money)


def derive_shares(facts):
    for own in facts.each("share_allocations"):
        reference = facts.of(own, "balance_transaction_id", "balance_transactions")["id"]
        amount, day, is_plus = Decimal(own["amount"]), own["occurred_on"], not own["amount"].startswith("-")
        due, left = account_of(DUE_FROM_PROCESSOR, own["partner_id"]), amount - facts.paid[own["share_allocation_id"]]
        money = own["currency"], plain_amount(left if is_plus else -left), None, reference
        if left and amount:
            if is_plus:
                yield ("share_received", own, day, PROCESSOR, due, *money)
            else:
                yield ("share_reversed", own, day, due, PROCESSOR, *money)
        if own["currency"] == own["settled_currency"]:
            continue
        sides = (CONVERSION, PROCESSOR) if is_plus else (PROCESSOR, CONVERSION)
        yield ("share_converted", own, day, *sides, own["currency"], plain_amount(abs(amount)), None, reference)
        settled = Decimal(own["settled_amount"])
        if settled:
            money = own["settled_currency"], plain_amount(abs(settled)), None, reference
            yield ("share_converted", own, day, *reversed(sides), *money)


def plain_amount(amount):
    return canonical("{:f}".format(amount))


# The fact that decides whether there is an entry can be older than the pack.
PERHAPS = ("document_voided", "small_difference_undone", "refund_matched")


def check_postings(pack, problem):
    facts, expected = Facts(pack, problem), defaultdict(list)

    def key(entry):
        # A document has an entry for each tax, and two if a reduced rate equals another rate.
        tax = next((side for side in entry[4:6] if isinstance(side, str) and side.startswith(TAX + ":")), None)
        return entry[0], entry[1], entry[6] if entry[0] == "share_converted" else tax

    for fact, own, *rest in derive_entries(facts):
        entry = [fact, own[KEY_OF[POSTED[fact][0]]], own["entry_on"], *rest]
        expected[key(entry)].append(entry)
    apart = 0
    for books, entry in pack.entries:
        alike = expected[key(entry)]
        equal = (n for n, each in enumerate(alike) if all(two in (OLDER, one) for one, two in zip(entry, each)))
        derived = alike.pop(next(equal, 0)) if alike else None
        wrong = facts.cannot_be(books, entry) if derived is None else None
        apart += derived is None and not wrong
        other = [name for name, one, two in zip(ENTRY, entry, derived or entry) if two is not OLDER and one != two]
        if other:
            wrong = "does not follow from its fact in " + ", ".join(other)
        if wrong:
            problem("the books of %s: %s %s %s" % (books.month, entry[0], entry[1], wrong))
    first = next(iter(pack.books.values()), None)
    for entry in (each for alike in expected.values() for each in alike):
        month = entry[2][:7]
        perhaps = entry[0] in PERHAPS and entry[4] is OLDER
        if not perhaps and (month in pack.books or (first and first.previous is None and month < first.month)):
            problem("the books of %s do not have %s %s" % (month, entry[0], entry[1]))
    if apart:
        problem.notes.append("%d entries belong to facts that are older than this pack or later than its last seal" % apart)


def check_roll_forward(pack, before, books, problem):
    found = defaultdict(Decimal, books.moved)
    for key, (_, amount) in (before.accounts if before else {}).items():
        found[key] += amount
    for key, amount in pack.postings.get(books.month, {}).items():
        found[key] += amount
    for key in found.keys() | books.accounts.keys():
        if pack.manifest.kind != "ledger" and is_of_rows(key[0]):
            continue
        if found.get(key, 0) != books.accounts.get(key, (None, 0))[1]:
            problem("%s: %s in %s does not follow from the month before" % (books.month, *key))


# --- Checks of the data files -----------------------------------------------------------------------------------------

LEDGER = (
    "kind partner_id quote_id requote_id reversal_id enrollment_id policy_id currency accepted_at spotPrice partnerCut "
    "invoiceAmount entry_id posted_month recorded_at document"
).split()
INVOICE = (
    "number series sequence document purpose status partner_id partner_name month currency arrangement issued_on due_on "
    "enrollments spotPrice partnerCut invoiceAmount credit_applied amount_due credited amount_paid balance "
    "pdf_sha256 email_status sent_at replaces replaced_by credits reason voided_on void_reason"
).split()
INVOICE_JSON = (
    "number series sequence document purpose status partner_id month currency issued_on due_on enrollments spotPrice "
    "partnerCut invoiceAmount credit_applied amount_due credited amount_paid balance lines pdf email "
    "replaces replaced_by credits void_reason"
).split()
LINE_JSON = ["policy_id", "kind", "month", "count"] + LEDGER_SUMS
LINE = "number position policy_id policy_name kind month count currency".split() + LEDGER_SUMS
MOVE = "move document currency amount dated_on entry_on why recorded_at".split()
POSTING = "entry_on dated_on fact fact_id account partner_id policy_id currency amount document reference".split()
SEALED_NAME = dict(zip(LEDGER_SUMS, SUMS))
MONEY = set(INVOICE_SUMS + ["amount", "original_amount"])
TIMES = {"accepted_at", "recorded_at", "occurred_at"}
RISKY = re.compile(r"['\t\r\n]|[ \t\r\n]*[=+@\uFF1D\uFF0B\uFF0D\uFF20-]")


def sealed_time(text):
    return text.replace(" ", "T")[:-3] + "Z" if text.endswith("+00") else text


def plain_time(cell):
    head, dot, fraction = cell.partition(".")
    if not dot or not fraction.endswith("Z"):
        return cell
    fraction = fraction[:-1].rstrip("0")
    return head + (("." + fraction) if fraction else "") + "Z"


def says(column, cell, sealed, csv):
    """Whether an exported cell is the sealed value."""
    sealed = sealed or ""
    if column in MONEY:
        return cell == sealed or (isinstance(cell, str) and bool(is_money(cell)) and canonical(cell) == sealed)
    if column in TIMES:
        return isinstance(cell, str) and plain_time(cell) == sealed_time(sealed)
    if csv and RISKY.match(sealed):
        return cell == "'" + sealed or (cell == sealed and bool(is_money(sealed)))
    return cell == sealed


def uncover(cell, csv):
    return cell[1:] if csv and cell.startswith("'") and RISKY.match(cell[1:]) else cell


class DataFile:
    """One data file: reads it against the manifest, and compares rows."""

    def __init__(self, pack, name, problem):
        self.pack, self.name, self.problem = pack, name, problem
        self.csv = name.endswith(".csv")
        self.unsealed = Counter()

    def rows(self, columns):
        stated = self.pack.manifest.files[self.name]
        summed = [columns.index(each) for each in SUMMED[self.pack.manifest.kind]] if stated["totals"] is not None else []
        currency = columns.index("currency") if summed else 0
        sums, self.count = {}, 0
        for row in read_rows(self.pack.folder, self.name, columns):
            self.count += 1
            if summed:
                cells = row[0]
                for at in summed:
                    if not isinstance(cells[at], str) or not is_money(cells[at]):
                        raise Malformed("%s: row %d: %s is not an amount" % (self.name, self.count, columns[at]))
                old = sums.get(cells[currency]) or [Decimal(0)] * len(summed)
                sums[cells[currency]] = [one + Decimal(cells[at]) for one, at in zip(old, summed)]
            yield row
        if self.count != stated["rows"]:
            self.problem("%d rows where the manifest says %d" % (self.count, stated["rows"]))
        if summed and sums != stated["totals"]:
            self.problem("its totals are not the manifest's")

    def compare(self, what, columns, cells, sealed):
        """`sealed` has the values by column; other columns are not compared."""
        other = [
            name for name, cell in zip(columns, cells) if name in sealed and not says(name, cell, sealed[name], self.csv)
        ]
        if other:
            self.problem("%s is not as it was sealed in %s" % (what, ", ".join(other)))

    def result(self):
        for what, count in self.unsealed.items():
            if count:
                self.problem.notes.append("%s: %d %s under no seal of this pack" % (self.name, count, what))
        return many(self.count, "row") + " as sealed and as in the manifest", None


def sealed_ledger(pack):
    for record in pack.records.values():
        table = Table(pack.folder, "sealed/%s/ledger_rows.tsv" % record.month)
        wanted = {name: table.columns.index(SEALED_NAME.get(name, name)) for name in LEDGER if name not in ("document",)}
        arrangement = table.columns.index("arrangement")
        for _, fields, _ in table:
            row = {name: fields[at] for name, at in wanted.items()}
            row["posted_month"] = record.month
            yield row, (row["partner_id"], record.month, row["currency"], fields[arrangement])


def check_ledger(file):
    pack, problem = file.pack, file.problem
    sealed = sealed_ledger(pack)
    still_open = {each["month"] for each in pack.manifest.months if each["seal"] is None}
    last = 0
    for cells, _, _ in file.rows(LEDGER):
        entry, posted, document = cells[12], cells[13], cells[15]
        row, bill = next(sealed, (None, None))
        if row is None:
            file.unsealed["rows of open months"] += 1
            if posted not in still_open:
                problem("row %s is none of the sealed rows of %s" % (entry, posted))
            if document != "":
                problem("row %s of an open month names %s" % (entry, document))
            if not is_number(entry) or int(entry) <= last:
                problem("row %s is out of order" % entry)
            else:
                last = int(entry)
            continue
        file.compare("row " + row["entry_id"], LEDGER, cells, row)
        expected = next((each["number"] for each in pack.bills.get(bill, []) if not each["replaced_by"]), None)
        if document == expected:
            continue
        if document in pack.numbers or not re.fullmatch(r"[A-Z]+-[0-9]{4}-[0-9]{6,}", document):
            problem("row %s names %s, not %s" % (entry, document or "no document", expected))
        else:
            file.unsealed["documents named by rows"] += 1
    if next(sealed, None) is not None:
        problem("sealed rows are missing at its end")
    return file.result()


def documents_in_order(pack):
    chosen = [
        each
        for each in pack.documents.values()
        if pack.manifest.first <= each["month"] <= pack.manifest.last and each["purpose"] != "opening"
    ]
    return sorted(chosen, key=lambda each: (each["series"].encode(), int(each["sequence"])))


def document_values(pack, document):
    """The sealed values of a document, by the columns of an export. Later changes are left out until they are sealed."""

    def number_of(key):
        if document[key] is None:
            return ""
        return pack.documents.get(document[key], {}).get("number", "")

    values = {name: document[name] for name in COLUMNS["documents"] if name not in SUMS and name != "document_id"}
    for name, sealed in SEALED_NAME.items():
        values[name] = document[sealed]
    for key in ("replaces", "credits"):
        if document[key] is None or document[key] in pack.documents:
            values[key] = number_of(key)
        else:
            del values[key]
    if document["replaced_by"]:
        values["replaced_by"] = document["replaced_by"]
    if document["void"]:
        values.update(voided_on=document["void"]["voided_on"], void_reason=document["void"]["reason"])
    return values


def check_invoices(file):
    pack, problem = file.pack, file.problem
    columns = INVOICE if file.csv else INVOICE_JSON
    missing, voids = {each["number"] for each in documents_in_order(pack)}, []
    before = (b"", 0)
    for cells, value, _ in file.rows(columns):
        row = dict(zip(columns, cells))
        number = row["number"]
        sequence = int(row["sequence"]) if is_number(row["sequence"]) else -1
        place = (row["series"].encode(), sequence)
        if place <= before:
            problem("%s is out of order" % number)
        before = place
        check_standing(row, pack.numbers.get(number), problem)
        if row["purpose"] == "opening":
            problem(number + " was carried over and has no month")
        if row["status"] == "void":
            voids.append(row)
        pdf = row.get("pdf_sha256", "")
        if not file.csv:
            pdf = "" if value.get("pdf") is None else take(value["pdf"], ["sha256", "bytes"], file.name)[0]
            lines = want_list(value.get("lines"), file.name + ": lines")
            if value.get("email") is not None:
                take(value["email"], ["status", "to", "message_id", "sent_at"], file.name)
        if pdf != "" and not (isinstance(pdf, str) and is_hash(pdf)):
            problem(number + ": the hash of its PDF is none")
        document = pack.numbers.get(number)
        if document is None:
            file.unsealed["documents"] += 1
            continue
        missing.discard(number)
        file.compare(number, columns, cells, document_values(pack, document))
        if document["pdf"] is None:
            file.unsealed["PDFs"] += bool(pdf)
        elif pdf != document["pdf"]:
            problem(number + " has another PDF than the sealed one")
        is_void = row["status"] == "void"
        if document["void"] and not is_void:
            problem(number + " is void, not " + row["status"])
        if not document["void"]:
            file.unsealed["voids"] += is_void
        if not is_void and (row["void_reason"] or row.get("voided_on")):
            problem(number + " is not void but has a reason for a void")
        if not document["replaced_by"] and row["replaced_by"]:
            file.unsealed["replacements"] += 1
            if row["replaced_by"] in pack.numbers:
                problem("%s is not replaced by %s" % (number, row["replaced_by"]))
        if not file.csv:
            if len(lines) != len(document["lines"]):
                problem("%s has %d lines where %d were sealed" % (number, len(lines), len(document["lines"])))
            for line, sealed in zip(lines, document["lines"]):
                values = {name: sealed[SEALED_NAME.get(name, name)] for name in LINE_JSON}
                found = [as_cell(each) for each in take(line, LINE_JSON, "%s: line of %s" % (file.name, number))]
                file.compare("line %s of %s" % (sealed["position"], number), LINE_JSON, found, values)
    for number in sorted(missing):
        problem(number + " is missing")
    pack.void_rows = voids
    problem.notes.append(
        file.name + ": status, credited, amount_paid, balance, and data about e-mails, are as of the "
        "export, and under no seal"
    )
    return file.result()


def check_standing(row, document, problem):
    amount = {name: Decimal(canonical(row[name])) for name in INVOICE_SUMS}
    # The tax of a document is unknown until it is sealed.
    due = amount["amount_due"]
    if document is not None:
        tax = sum(Decimal(each["tax"]) for each in document["taxes"])
        due = amount["invoiceAmount"] + tax - amount["credit_applied"]
    if row["document"] == "statement":
        due = Decimal(0)
    left = Decimal(0) if row["status"] == "void" else due - amount["credited"] - amount["amount_paid"]
    if amount["amount_due"] != due:
        problem(row["number"] + ": amount_due does not follow")
    if amount["balance"] != left:
        problem(row["number"] + ": balance does not follow")
    if row["status"] != "void" and row["status"] != ("open" if left else "paid"):
        problem(row["number"] + ": status does not follow")


def check_invoice_lines(file):
    pack, problem = file.pack, file.problem
    sealed = iter([(document, line) for document in documents_in_order(pack) for line in document["lines"]])
    for cells, _, _ in file.rows(LINE):
        if cells[0] not in pack.numbers:
            file.unsealed["lines"] += 1
            continue
        document, line = next(sealed, (None, None))
        if document is None:
            problem("line %s of %s was not sealed" % (cells[1], cells[0]))
            continue
        values = {name: line[SEALED_NAME.get(name, name)] for name in LINE if name not in ("number", "currency")}
        values.update(number=document["number"], currency=document["currency"])
        file.compare("line %s of %s" % (line["position"], document["number"]), LINE, cells, values)
    for document, line in sealed:
        problem("line %s of %s is missing" % (line["position"], document["number"]))
    return file.result()


def check_events(file):
    pack, problem = file.pack, file.problem
    sealed = iter(pack.facts["audit_events"])
    still_open = pack.is_open_at_end()
    for cells, _, text in file.rows(EVENT):
        event = next(sealed, None)
        if event is None:
            file.unsealed["events"] += 1
            if not still_open:
                problem("event %s was not sealed" % cells[0])
            continue
        values = {name: event[name] for name in EVENT}
        if not file.csv:
            del values["details"]
            if ', "details" : %s, "claimed_by" : ' % event["details"] not in text:
                problem("event %s is not as it was sealed in details" % event["event_id"])
        file.compare("event " + event["event_id"], EVENT, cells, values)
    for event in sealed:
        problem("event %s is missing" % event["event_id"])
    return file.result()


def check_payments(file):
    pack, problem = file.pack, file.problem
    columns = PAYMENT + ["applied", "reversed", "unapplied", "status"]
    sealed = {each["payment_id"]: each for each in pack.facts["payments"]}
    missing = {key for key, each in sealed.items() if is_dated(pack, each)}
    before = 0
    for cells, _, _ in file.rows(columns):
        number = int(cells[0]) if is_number(cells[0]) else 0
        if number <= before:
            problem("payment %s is out of order" % cells[0])
        before = number
        missing.discard(cells[0])
        payment = sealed.get(cells[0])
        if payment is None:
            file.unsealed["payments"] += 1
            continue
        values = {name: payment[name] for name in PAYMENT if name != "partner_id"}
        file.compare("payment " + cells[0], columns, cells, values)
    for key in sorted(missing, key=int):
        problem("payment %s is missing" % key)
    problem.notes.append(
        file.name + ": partner_id, applied, reversed, unapplied and status are as of the export and not sealed"
    )
    return file.result()


def is_dated(pack, fact):
    return pack.manifest.first <= fact["entry_on"][:7] <= pack.manifest.last


def negative(amount):
    return amount if amount == "0" else amount[1:] if amount.startswith("-") else "-" + amount


def payment_moves(pack):
    """(fact, payment_id, move, document_id, currency, amount, dated_on, why) of each fact that moves a payment."""
    facts = pack.facts
    applied = {each["payment_application_id"]: each for each in facts["payment_applications"]}
    small = {each["payment_application_id"]: each for each in facts["small_differences"]}
    paid = {each["payment_id"]: each for each in facts["payments"]}
    for each in applied.values():
        why = parse_json(each["evidence"] or "{}", "evidence").get("why")
        yield each, each["payment_id"], "applied", each["document_id"], each["currency"], each["amount"], each["applied_on"], why
    for key, each in small.items():
        of = applied.get(key)
        if of:
            why = "a difference too small to pursue"
            yield each, of["payment_id"], "bank_charges", each["document_id"], each["currency"], each["amount"], of["applied_on"], why
    for each in facts["payment_unapplications"]:
        key = each["payment_application_id"]
        why = "unapplied by a user" if each["payment_reversal_id"] is None else "payment reversed"
        for move, source in (("unapplied", applied), ("bank_charges_reversed", small)):
            if key in applied and key in source:
                of = source[key]
                amount = negative(of["amount"])
                yield each, applied[key]["payment_id"], move, of["document_id"], of["currency"], amount, each["unapplied_on"], why
    for each in facts["payment_reversals"]:
        why = ": ".join(part for part in (each["code"], each["reason"]) if part is not None)
        yield each, each["payment_id"], each["kind"], None, each["currency"], negative(each["amount"]), each["reversed_on"], why
    for each in facts["payment_assignments"]:
        if each["payment_id"] in paid:
            why = "from %s to %s" % (each["from_partner_id"] or "an unknown payer", each["partner_id"])
            currency = paid[each["payment_id"]]["currency"]
            yield each, each["payment_id"], "assigned", None, currency, each["amount"], each["assigned_on"], why


def credit_moves(pack):
    """The same for each fact that moves credit; the id is the credit note's document_id."""
    facts = pack.facts
    action = {each["event_id"]: each["action"] for each in facts["audit_events"]}
    applied = {each["credit_application_id"]: each for each in facts["credit_applications"]}
    refunded = {each["credit_refund_id"]: each for each in facts["credit_refunds"]}

    def currency(document):
        return pack.documents[document]["currency"] if document in pack.documents else OLDER

    for each in applied.values():
        note, why = each["credit_note_id"], action.get(each["event_id"], OLDER)
        yield each, note, "applied", each["invoice_id"], currency(note), each["amount"], each["applied_on"], why
    for each in facts["credit_releases"]:
        of = applied.get(each["credit_application_id"])
        if of:
            note, why = of["credit_note_id"], action.get(each["event_id"], OLDER)
            yield each, note, "released", of["invoice_id"], currency(note), negative(of["amount"]), each["released_on"], why
    for each in refunded.values():
        yield each, each["document_id"], "refunded", None, each["currency"], each["amount"], each["refunded_on"], each["reference"]
    for each in facts["credit_refund_returns"]:
        of = refunded.get(each["credit_refund_id"])
        if of:
            amount = negative(of["amount"])
            yield each, of["document_id"], "refund_returned", None, of["currency"], amount, each["returned_on"], each["reason"]


def check_moves(file, id_column, moves):
    pack = file.pack

    def number_of(document):
        return "" if document is None else pack.documents[document]["number"] if document in pack.documents else OLDER

    expected = Counter()
    for fact, key, move, document, currency, amount, day, why in moves:
        if not is_dated(pack, fact):
            continue
        key = number_of(key) if id_column == "credit_note" else key
        row = (key, move, number_of(document), currency, amount, day, fact["entry_on"], why or "")
        if OLDER not in row:
            expected[row + (sealed_time(fact["recorded_at"]),)] += 1
    for cells, _, _ in file.rows([id_column] + MOVE):
        cells = list(cells)
        cells[4] = canonical(cells[4]) if is_money(cells[4]) else cells[4]
        cells[7] = uncover(cells[7], file.csv)
        cells[8] = plain_time(cells[8])
        row = tuple(cells)
        if expected[row] > 0:
            expected[row] -= 1
        else:
            file.unsealed["rows"] += 1
    for row, count in expected.items():
        if count > 0:
            file.problem("it does not have the sealed move " + " ".join(row))
    return file.result()


def check_opening(file):
    pack = file.pack
    pack.opening = {}
    for cells, _, _ in file.rows(["account", "currency", "amount"]):
        account, currency, amount = cells
        key = (uncover(account, file.csv), currency)
        if not is_money(amount):
            raise Malformed("%s: the balance of %s is not an amount" % (file.name, account))
        if key in pack.opening:
            file.problem("%s in %s occurs twice" % key)
        pack.opening[key] = Decimal(amount)
    return file.result()


OF_LEDGER_ROWS = ("quote_accepted", "requote_accepted", "reversal")


def compare_postings(file, postings, text_of):
    """Compares (entry_on, dated_on, fact, fact_id, account, currency, amount, text) with closed books."""
    pack, problem = file.pack, file.problem
    expected = Counter()
    for _, (fact, fact_id, entry_on, dated_on, debit, credit, currency, amount, document, reference) in pack.entries:
        if entry_on[:7] < pack.manifest.first:
            continue
        for account, value in ((debit, amount), (credit, negative(amount))):
            expected[entry_on, dated_on, fact, fact_id, account, currency, value, text_of(document, reference)] += 1
    months = defaultdict(lambda: defaultdict(Decimal))
    for entry_on, dated_on, fact, fact_id, account, currency, amount, text in postings:
        if not is_money(amount):
            raise Malformed("%s: an amount of %s %s is not an amount" % (file.name, fact, fact_id))
        if not is_day(entry_on) or not pack.manifest.first <= entry_on[:7] <= pack.manifest.last:
            problem("%s %s is dated %s" % (fact, fact_id, entry_on))
        if entry_on[:7] not in pack.books:
            file.unsealed["postings of open books"] += 1
            continue
        months[entry_on[:7]][account, currency] += Decimal(amount)
        if fact in OF_LEDGER_ROWS:
            continue
        key = (entry_on, dated_on, fact, fact_id, account, currency, canonical(amount), text)
        if expected[key] > 0:
            expected[key] -= 1
        else:
            problem("%s %s does not post %s %s to %s as it was sealed" % (fact, fact_id, amount, currency, account))
    for key, count in expected.items():
        if count > 0:
            problem("it does not have the posting %s %s of %s %s on %s" % (*key[2:4], *key[6:4:-1], key[0]))
    sums = defaultdict(Decimal, pack.opening)
    for month, books in pack.books.items():
        for key, amount in months[month].items():
            sums[key] += amount
        for key in sums.keys() | books.accounts.keys():
            if sums.get(key, 0) != books.accounts.get(key, (None, 0))[1]:
                problem("%s in %s at the end of %s is not the balance that was sealed" % (*key, month))


def check_journal(file):
    def postings():
        for cells, _, _ in file.rows(POSTING):
            cells = [uncover(each, file.csv) for each in cells]
            yield (*cells[:5], *cells[7:9], tuple(cells[9:]))

    compare_postings(file, postings(), lambda document, reference: (document or "", reference or ""))
    file.problem.notes.append(file.name + ": partner_id and policy_id are as of the export and not sealed")
    return file.result()


# --- The journals for accounting programs -------------------------------------------------------------------------------

# Characters are escaped only if they cannot be written plainly.
OF_LEDGER = r"[a-z](?:[A-Za-z0-9._:-]|%(?!2D|2E|5F|3[0-9]|[46][1-9A-F]|[57][0-9A])[0-9A-F]{2})*"
OF_BEANCOUNT = r"[A-Z][A-Za-z0-9:-]*"
COMMODITY = r"commodity (%s)\n(?:    format 1000\.0+ %s\n)?" % (CURRENCY, CURRENCY)
OPTION = 'option "operating_currency" "(%s)"\n' % CURRENCY
ACCOUNT_OF_LEDGER = "account ((%s))\n" % OF_LEDGER
ACCOUNT_OF_BEANCOUNT = '1970-01-01 open (%s)\n  account: "(%s)"\n' % (OF_BEANCOUNT, OF_LEDGER)
LEDGER_TITLE = r"; .+\n; For hledger and ledger\. Dates are entry dates\.\n\n"
# For each dialect: the number of blocks and the form of its head, currencies, accounts; then the forms of lines.
DIALECTS = {
    "ledger": (
        (4, LEDGER_TITLE + "(?:%s)*\ntag dated\n\n(?:%s)*\n" % (COMMODITY, ACCOUNT_OF_LEDGER), COMMODITY, ACCOUNT_OF_LEDGER),
        {
            "opening": r"(%s) \* opening balances" % DAY,
            "entry": r"(%s) \* \((?P<fact>[a-z_]+):(?P<id>%s)\) (?P=fact)(?P<text>(?: .*)?)" % (DAY, NUMBER),
            "fact": "(?!)",
            "dated": "    ; dated: (%s)" % DAY,
            "posting": "    (%s)    (%s) (%s)" % (OF_LEDGER, WITH_DIGITS, CURRENCY),
            "closing": r"(%s) \* balances" % DAY,
            "balance": r"    (?P<account>%s)    0(?:\.0+)? (?P<currency>%s) = (?P<amount>%s) (?P=currency)"
            % (OF_LEDGER, CURRENCY, WITH_DIGITS),
        },
    ),
    "beancount": (
        (3, "; .+\n\n(?:%s)*\n(?:%s)*\n" % (OPTION, ACCOUNT_OF_BEANCOUNT), OPTION, ACCOUNT_OF_BEANCOUNT),
        {
            "opening": r'(%s) \* "opening balances"' % DAY,
            "entry": r'(%s) \* "(?P<fact>[a-z_]+)" "(?P<text>[^"\\]*)"' % DAY,
            "fact": '  fact: "([a-z_]+):(%s)"' % NUMBER,
            "dated": "  dated: (%s)" % DAY,
            "posting": "  (%s)  (%s) (%s)" % (OF_BEANCOUNT, WITH_DIGITS, CURRENCY),
            "closing": "(%s) balance .*" % DAY,
            "balance": r"(%s) balance (?P<account>%s)  (?P<amount>%s) ~ 0 (?P<currency>%s)"
            % (DAY, OF_BEANCOUNT, WITH_DIGITS, CURRENCY),
        },
    ),
}


def plain_text(*parts):
    """The compared part of a text: ASCII letters, digits and some signs."""
    return " ".join(re.sub(r"[^A-Za-z0-9._,:/#@+-]", " ", " ".join(part for part in parts if part)).split())


def beancount_names(name):
    """The names in journal.beancount of an account of journal.ledger: its last word as a word, and as a subaccount."""
    *words, last = name.split(":")
    words = [word[:1].upper() + word[1:] for word in words]
    own = "".join(
        each if re.match("[A-Za-z0-9]", each) else "--" if each == "-" else re.sub("....", r"-\g<0>", each.encode("utf-16-be").hex())
        for each in unquote_to_bytes(last).decode()
    )
    return {":".join([*words, last[:1].upper() + last[1:]]), ":".join([*words, "Id-" + own])}


class TextJournal:
    """Reads journal.ledger or journal.beancount: a head, and then blocks of lines, each followed by an empty line."""

    def __init__(self, file):
        self.file, self.pack = file, file.pack
        self.head, lines = DIALECTS[file.name.partition(".")[2]]
        self.forms = {name: form(pattern) for name, pattern in lines.items()}
        self.number, self.count, self.names, self.digits, self.sums = 0, 0, {}, {}, {}

    def wrong(self, what):
        raise Malformed("%s: line %d: the block that ends here %s" % (self.file.name, self.number, what))

    def blocks(self):
        block = []
        for line in read_lines(self.pack.folder, self.file.name):
            self.number += 1
            text = decode(line, self.file.name)
            if re.search("[\x00-\x1f\x7f]", text):
                self.wrong("has a control character")
            if text:
                block.append(text)
                continue
            yield block
            block = []
        if block:
            self.wrong("is not followed by an empty line")

    def read_head(self, blocks):
        count, whole, currency, account = self.head
        text = "".join("".join(line + "\n" for line in next(blocks, ())) + "\n" for _ in range(count))
        currencies, names = re.findall(currency, text), re.findall(account, text)
        if not re.fullmatch(whole, text) or not in_order(currencies) or not in_order([name for name, _ in names]):
            self.wrong("is not the head of a journal")
        self.digits = dict.fromkeys(currencies)
        self.digits.update((each, len(zeros)) for zeros, each in re.findall(r"    format 1000\.(0+) (...)\n", text))
        for name, escaped in names:
            self.names[name] = decode(unquote_to_bytes(escaped), self.file.name)
            if name != escaped and name not in beancount_names(escaped):
                self.wrong("declares %s as %s" % (name, escaped))
        if len(set(self.names.values())) != len(names):
            self.wrong("declares an account twice")

    def amount(self, account, amount, currency):
        """(account, currency) and the amount, with the currency's number of digits."""
        digits = len(amount.partition(".")[2])
        if account not in self.names or currency not in self.digits:
            self.wrong("names an undeclared account or currency")
        if self.digits[currency] is None:
            self.digits[currency] = digits
        if self.digits[currency] != digits:
            self.wrong("has an amount with a wrong number of digits")
        return (account, currency), Decimal(amount)

    def post(self, lines):
        postings, left = [], defaultdict(Decimal)
        for line in lines:
            found = self.forms["posting"](line) or self.wrong("has a line that is not a posting")
            key, value = self.amount(*found.groups())
            self.sums[key] = self.sums.get(key, Decimal(0)) + value
            left[key[1]] += value
            postings.append((*key, found.group(2)))
        if not postings or any(left.values()):
            self.wrong("does not add up to zero")
        return postings

    def balances(self):
        """The sums of all postings so far. A balance in beancount includes the accounts below."""
        if self.file.name == "journal.ledger":
            return self.sums
        totals = defaultdict(Decimal)
        for (account, currency), amount in self.sums.items():
            for own in accumulate(account.split(":"), "{}:{}".format):
                totals[own, currency] += amount
        return totals

    def close(self, block, day, stated):
        """Balances at the end of a day: the sums of all earlier postings."""
        (first, *lines), balances = block, self.balances()
        for line in block if self.forms["balance"](first) else lines:
            found = self.forms["balance"](line) or self.wrong("has a line that is not a balance")
            key, value = self.amount(*found.group("account", "amount", "currency"))
            if key in stated or key not in self.sums or balances[key] != value or not line.startswith((" ", day)):
                self.wrong("is not the balance of %s in %s" % key)
            stated.add(key)

    def postings(self):
        """All postings of entries. The number of entries is the manifest's number of rows."""
        manifest, blocks = self.pack.manifest, self.blocks()
        self.read_head(blocks)
        month, before, stated = manifest.first, "", set()
        for block in blocks:
            first, *lines = block or self.wrong("is empty")
            opening, entry, closing = (self.forms[name](first) for name in ("opening", "entry", "closing"))
            if closing:
                end = (date.fromisoformat(following(month) + "-01") - timedelta(" balance " not in first)).isoformat()
                if closing.group(1) != end:
                    self.wrong("is not dated at the end of %s" % month)
                self.close(block, end, stated)
            elif opening:
                accounts = len(self.sums)
                postings = self.post(lines)
                if before or stated or opening.group(1) != month + "-01" or len({each[1] for each in postings}) > 1:
                    self.wrong("is not an opening balance of %s" % month)
                if len(self.sums) != accounts + len(postings):
                    self.wrong("opens an account twice")
                self.pack.opening.update({(self.names[each[0]], each[1]): amount for each, amount in self.sums.items()})
            elif entry:
                if entry.group(1)[:7] != month and self.count:
                    self.finish(stated, month)
                    stated = set()
                elif stated or entry.group(1) < before:
                    self.wrong("is out of order")
                self.count += 1
                month, before = entry.group(1)[:7], entry.group(1)
                yield from self.entry(entry, lines)
            else:
                self.wrong("is not part of a journal")
        self.finish(stated, month)

    def finish(self, stated, month):
        if len(stated) != len(self.sums):
            self.wrong("does not have all balances of %s" % month)

    def entry(self, entry, lines):
        """The postings of one entry."""
        day, named = entry.group(1), entry.groupdict()
        fact = (named["fact"], named.get("id"))
        if fact[1] is None:
            found = self.forms["fact"](lines.pop(0) if lines else "")
            fact = found.groups() if found else fact
        if fact[0] != named["fact"] or fact[1] is None:
            self.wrong("does not name its fact")
        dated = self.forms["dated"](lines[0]) if lines else None
        if dated:
            lines.pop(0)
            if dated.group(1) == day:
                self.wrong("has two dates")
        for account, currency, amount in self.post(lines):
            texts = plain_text(named["text"])
            yield day, dated.group(1) if dated else day, *fact, self.names[account], currency, amount, texts


def check_text_journal(file):
    journal = TextJournal(file)
    file.pack.opening = {}
    compare_postings(file, journal.postings(), plain_text)
    if journal.count != file.pack.manifest.files[file.name]["rows"]:
        file.problem("%d entries, a number other than the manifest's" % journal.count)
    return many(journal.count, "entry", "entries") + " as sealed and as in the manifest", None


# --- Voids, write-offs, bank lines, partners ------------------------------------------------------------------------------

VOID = "number document_id partner_id month currency arrangement reason voided_on entry_on recorded_at event_id".split()
WRITE_OFF = (
    "fact_id write_off_id move document partner_id currency amount reason dated_on entry_on recorded_at event_id"
).split()
CARRIED = (
    "fact_id opening_id cut_over_on kind number partner_id date due_on currency original_amount amount status balance"
).split()
BANK_ROW = ["bank_statement_id", "position", "bank_line_id"] + BANK_LINE + OUTCOME + "statement file file_sha256 recorded_at".split()
PARTNER = (
    "partner_id name address.line1 address.line2 address.city address.region address.postal_code address.country "
    "invoicing_contact.name invoicing_contact.email invoicing_contact.cc currency time_zone payment_terms_days active tax_id "
    "purchase_order legal_note parent account_statement e_invoice buyer_reference electronic_address arrangement "
    "arrangement_from connected_account_id merchant_of_record split settlement_currencies connected_account_type connected_account_state balance_transactions_from"
).split()
POLICY = "partner_id policy_id name kind active partner_cut_rate price.rate price.minimum largest_price".split()
CHANGE = "event_id occurred_at partner_id action field old new import_event_id claimed_by os_user host via".split()
GL_EXPORT = "gl_export_id month format part kind seal books_closed position file sha256 recorded_at event_id".split()
GL_LINE = (
    "gl_export_id line month format part external_id control account partner_id policy_id currency amount to_account class "
    "location name memo"
).split()
TYPES = "text integer decimal amount date month instant boolean list object json".split()


def check_voids(file):
    pack, problem = file.pack, file.problem
    expected = iter(pack.void_rows or [])
    for cells, _, _ in file.rows(VOID):
        row = dict(zip(VOID, cells))
        if pack.void_rows is not None:
            invoice = next(expected, {})
            names = [name for name in ("number", "partner_id", "month", "currency", "voided_on") if name in invoice]
            if not invoice or any(row[name] != invoice[name] for name in names) or row["reason"] != invoice["void_reason"]:
                problem("%s is not the next void document of the invoices" % row["number"])
        document = pack.numbers.get(row["number"])
        if document is None or not document["void"]:
            file.unsealed["voids"] += 1
        else:
            file.compare("the void of " + row["number"], VOID, cells, {**document["void"], "number": document["number"]})
    for invoice in expected:
        problem("the void of %s is missing" % invoice["number"])
    return file.result()


def known_values(values):
    return {name: value for name, value in values.items() if value is not OLDER}


def compare_in_order(file, columns, key_columns, sealed, what, values_of):
    """Rows that ascend by a numeric key. `sealed` has the required ones."""
    missing, before = set(sealed), ()
    for cells, _, _ in file.rows(columns):
        row = dict(zip(columns, cells))
        key = tuple(int(row[name]) if is_number(row[name]) else 0 for name in key_columns)
        if key <= before:
            file.problem("%s %s is out of order" % (what, " ".join(map(str, key))))
        before = key
        missing.discard(key)
        values = values_of(key, row)
        if values is None:
            file.unsealed["rows"] += 1
        else:
            file.compare("%s %s" % (what, " ".join(map(str, key))), columns, cells, known_values(values))
    for key in sorted(missing):
        file.problem("%s %s is missing" % (what, " ".join(map(str, key))))
    return file.result()


def check_write_offs(file):
    pack = file.pack
    sealed = {}
    of = {each["write_off_id"]: each for each in pack.facts["write_offs"]}
    for table in ("write_offs", "write_off_reversals"):
        for own in pack.facts[table]:
            written = of.get(own["write_off_id"], OLDER)
            document = OLDER if written is OLDER else pack.documents.get(written["document_id"], OLDER)
            is_undone = table == "write_off_reversals"
            amount = written["amount"]
            sealed[(int(own["fact_id"]),)] = {
                **own,
                **{name: document[name] for name in ("partner_id", "currency")},
                "document": document["number"],
                "move": "reversed" if is_undone else "written_off",
                "amount": negative(amount) if is_undone and amount is not OLDER else amount,
                "dated_on": own["reversed_on" if is_undone else "written_off_on"],
            }
    there = {key for key, each in sealed.items() if is_dated(pack, each)}
    return compare_in_order(file, WRITE_OFF, ["fact_id"], there, "the write-off of fact", lambda key, _: sealed.get(key))


def carried_over(pack):
    """The sealed values of opening items, in the order of recording."""
    for each in pack.facts["documents"]:
        if each["opening_id"] is not None:
            kind = "invoice" if each["document"] == "invoice" else "credit"
            of_document = {"kind": kind, "date": each["issued_on"], "amount": each["invoice_amount"]}
            yield {**each, **of_document, "cut_over_on": each["entry_on"]}
    for each in pack.facts["payments"]:
        if each["opening_id"] is not None:
            of_cash = {"kind": "cash", "number": each["opening_number"], "date": each["received_on"], "due_on": None}
            yield {**each, **of_cash, "original_amount": each["amount"], "cut_over_on": each["entry_on"]}


def check_carried(file):
    """The items of openings, in the order of recording, and whether each is still open."""
    pack, problem = file.pack, file.problem
    stated = ("status", "balance")
    compared = [name for name in CARRIED if name not in stated]
    sealed = iter(sorted(carried_over(pack), key=lambda each: int(each["fact_id"])))
    for cells, _, _ in file.rows(CARRIED):
        row = dict(zip(CARRIED, cells))
        number, status, balance = row["number"], row["status"], row["balance"]
        if status not in ("open", "settled", "reversed") or not is_money(balance) or (status == "open") != (Decimal(balance) > 0):
            problem("%s is not %s with %s open" % (number, status, balance))
        document = pack.numbers.get(number) if row["kind"] != "cash" else None
        if document is not None and document["void"] and status != "reversed":
            problem("%s is reversed, not %s" % (number, status))
        item = next(sealed, None)
        if item is not None:
            file.compare(item["number"], CARRIED, cells, {name: item[name] for name in compared})
            continue
        file.unsealed["items"] += 1
        if not pack.is_open_at_end():
            problem("%s was not sealed" % number)
    for item in sealed:
        problem("%s is missing" % item["number"])
    problem.notes.append(file.name + ": status and balance are as of the export and not sealed")
    return file.result()


def check_bank_lines(file):
    pack, problem = file.pack, file.problem
    lines, files, outcomes = (
        {row[key]: row for row in pack.facts[table]}
        for table, key in (("bank_lines", "bank_line_id"), ("bank_files", "bank_file_id"), ("bank_line_outcomes", "bank_line_id"))
    )
    statements = {row["bank_statement_id"]: row for row in pack.facts["bank_statements"]}
    sealed, of_statement = {}, defaultdict(list)
    for row in pack.facts["bank_statement_lines"]:
        sealed[int(row["bank_statement_id"]), int(row["position"])] = row
        of_statement[row["bank_statement_id"]].append(lines.get(row["bank_line_id"], OLDER))
    for number, statement in statements.items():
        own = of_statement[number]
        if len(own) != int(statement["lines"]):
            problem("bank statement %s has %d lines but states %s" % (number, len(own), statement["lines"]))
        if any(line is OLDER for line in own):
            continue
        sums = [sum(Decimal(line["amount"]) for line in own if (line["direction"] == "credit") is credit) for credit in (True, False)]
        if sums != [Decimal(statement["credits"]), Decimal(statement["debits"])]:
            problem("the lines of bank statement %s do not add up" % number)
    for number, statement in statements.items():
        opening, closing = statement["opening"], statement["closing"]
        moved = Decimal(statement["credits"]) - Decimal(statement["debits"])
        if None not in (opening, closing) and Decimal(opening) + moved != Decimal(closing):
            problem("bank statement %s does not add up" % number)

    def values_of(key, row):
        own = sealed.get(key)
        if own is None:
            return None
        line, statement = lines.get(own["bank_line_id"], OLDER), statements.get(own["bank_statement_id"], OLDER)
        outcome, source = outcomes.get(own["bank_line_id"]), OLDER
        if statement is not OLDER:
            source = files.get(statement["bank_file_id"], OLDER)
        values = {**own, **{name: line[name] for name in BANK_LINE}, "statement": statement["reference"]}
        values.update(file=source["name"], file_sha256=source["sha256"], recorded_at=source["recorded_at"])
        if outcome:
            values.update((name, outcome[name]) for name in OUTCOME)
        elif any(row[name] for name in OUTCOME):
            file.unsealed["outcomes of lines"] += 1
        return values

    first, last = pack.manifest.first, pack.manifest.last
    there = {
        key
        for key, row in sealed.items()
        if row["bank_line_id"] in lines and first <= (lines[row["bank_line_id"]]["bank_booked_on"] or "")[:7] <= last
    }
    return compare_in_order(file, BANK_ROW, ["bank_statement_id", "position"], there, "bank line", values_of)


class HandedOff:
    """A journal exported to the general ledger, from gl-exports."""

    def __init__(self, row):
        self.row, self.files, self.lines = row, 0, 0
        self.sums = defaultdict(Decimal)  # by (account, currency)
        self.what = "part %s of %s for %s" % (row["part"], row["month"], row["format"])
        self.books_closed = row["books_closed"] == "true"

    def external_id(self, currency):
        return "-".join((self.row["month"], self.row["part"], currency, self.row["seal"][:6]))


def sealed_of_exports(pack, table, number):
    """The facts of a table of exports by their key, each with the values of its export, and the required keys."""
    exports = {each["gl_export_id"]: each for each in pack.facts["gl_exports"]}
    sealed, there = {}, set()
    for each in pack.facts[table]:
        export, key = exports.get(each["gl_export_id"]), (int(each["gl_export_id"]), int(each[number]))
        sealed[key] = {**(export or {}), **each}
        if export and pack.manifest.first <= export["month"] <= pack.manifest.last:
            there.add(key)
    return sealed, there


def check_gl_exports(file):
    pack, problem = file.pack, file.problem
    sealed, there = sealed_of_exports(pack, "gl_export_files", "position")
    last_part = Counter()

    def values_of(key, row):
        new = HandedOff({name: row[name] for name in GL_EXPORT if name not in ("position", "file", "sha256")})
        own = pack.handed_off.setdefault(row["gl_export_id"], new)
        if own is new:
            last_part[row["month"], row["format"]] += 1
            if row["part"] != str(last_part[row["month"], row["format"]]):
                problem("%s does not follow the previous part" % own.what)
            if not pack.manifest.first <= row["month"] <= pack.manifest.last:
                problem("%s has a month outside the pack" % own.what)
            record = (pack.books if own.books_closed else pack.records).get(row["month"])
            if not record or record.seal != row["seal"]:
                problem("%s names a seal that its month does not have" % own.what)
        elif own.row != new.row:
            problem("the files of %s belong to two exports" % own.what)
        own.files += 1
        if row["position"] != str(own.files):
            problem("%s lacks a file" % own.what)
        values = sealed.get(key)
        return values and {**values, "file": values["name"]}

    return compare_in_order(file, GL_EXPORT, ["gl_export_id", "position"], there, "file", values_of)


def check_gl_lines(file):
    pack, problem = file.pack, file.problem
    sealed, there = sealed_of_exports(pack, "gl_export_lines", "line")

    def values_of(key, row):
        own = pack.handed_off.get(row["gl_export_id"])
        if own is None:
            problem("line %d of %d belongs to no export" % (key[1], key[0]))
            return sealed.get(key)
        own.lines += 1
        stated = {**own.row, "line": str(own.lines), "external_id": own.external_id(row["currency"])}
        for name in ("line", "month", "format", "part", "external_id"):
            if row[name] != stated[name]:
                problem("line %s of %s has another %s" % (row["line"], own.what, name))
        if not is_money(row["amount"]):
            raise Malformed("%s: line %s of %s has no amount" % (file.name, row["line"], own.what))
        own.sums[uncover(row["account"], file.csv), row["currency"]] += Decimal(row["amount"])
        return sealed.get(key)

    result = compare_in_order(file, GL_LINE, ["gl_export_id", "line"], there, "line", values_of)
    check_handed_off(pack, problem)
    return result


def check_handed_off(pack, problem):
    """Each journal balances; all parts up to the last one, if its books were closed, add up to the month's movements."""
    together = defaultdict(lambda: defaultdict(Decimal))
    last = {}
    for each in pack.handed_off.values():
        if not each.lines:
            problem("%s has no lines" % each.what)
        left = defaultdict(Decimal)
        of = each.row["month"], each.row["format"]
        for (account, currency), amount in each.sums.items():
            left[currency] += amount
            together[of][account, currency] += amount
        for currency, amount in left.items():
            if amount:
                problem("debits and credits of %s differ in %s" % (each.what, currency))
        last[of] = each
    for (month, fmt), each in last.items():
        books = pack.books.get(month)
        if not books or not each.books_closed:
            continue
        now = {key: amount for key, (_, amount) in books.accounts.items()}
        before = {}
        if books.previous:
            earlier = pack.books.get(books.previous[0])
            before = {key: amount for key, (_, amount) in earlier.accounts.items()} if earlier else pack.opening
        exported = together[month, fmt]
        for key in now.keys() | before.keys() | exported.keys():
            if exported.get(key, 0) != now.get(key, 0) - before.get(key, 0):
                problem("%s in %s: the journals of %s for %s differ from the movement of its books" % (*key, month, fmt))


def is_value(cell, value, csv):
    """Whether a cell equals a JSON value. Null and an empty text are the same."""
    if value is None or value == "":
        return cell is None or cell == ""
    if not csv or isinstance(value, str):
        return (uncover(cell, csv) if csv else cell) == value and type(cell) is type(value)
    try:
        return parse_json(cell, "") == value
    except Malformed:
        return False


def read_values(file, columns):
    """The rows of a file with JSON values: by column, texts in CSV and values in JSON Lines."""
    for cells, value, _ in file.rows(columns):
        yield cells, dict(zip(columns, cells)) if file.csv else {name: value.get(name) for name in columns}


def last_changes(pack, name):
    """The last `new` of each field in partner-changes.F, by the key of its row in `name` and its column."""
    latest, changes = {}, "partner-changes." + name.partition(".")[2]
    csv = changes.endswith(".csv")
    for cells, value, _ in read_rows(pack.folder, changes, CHANGE):
        row = dict(zip(CHANGE, cells)) if csv else value
        partner, field = (uncover(row.get(each) or "", csv) for each in ("partner_id", "field"))
        policy = re.fullmatch(r"policies\.(.*)\.(%s)" % "|".join(map(re.escape, POLICY[2:])), field, re.DOTALL)
        if name.startswith("policies") and policy:
            latest.setdefault((partner, policy.group(1)), {})[policy.group(2)] = row.get("new")
        elif name.startswith("partners") and not policy:
            latest.setdefault((partner,), {})[field] = row.get("new")
    if name.startswith("policies"):
        return {key: each for key, each in latest.items() if any(not is_empty(value) for value in each.values())}
    return latest


def is_empty(value):
    return value is None or value == ""


def check_partners(file, columns, keys):
    """The current values. If the pack has every change, they follow from the changes."""
    pack, problem, before = file.pack, file.problem, ()
    latest = last_changes(pack, file.name)
    is_whole = pack.from_the_start and pack.manifest.last not in pack.records
    missing = set(latest)
    for cells, row in read_values(file, columns):
        key = tuple(uncover(each, file.csv) if isinstance(each, str) else "" for each in cells[:keys])
        if tuple(each.encode() for each in key) <= before:
            problem("%s is out of order" % " ".join(key))
        before = tuple(each.encode() for each in key)
        missing.discard(key)
        changed = latest.get(key)
        if changed is None and is_whole:
            problem("%s has no recorded change" % " ".join(key))
            continue
        for name in columns[keys:] if is_whole else changed or ():
            value = (changed or {}).get(name)
            if value != row.get(name) and not (is_empty(value) and is_empty(row.get(name))):
                if is_whole:
                    problem("%s of %s does not follow from the changes" % (name, " ".join(key)))
                else:
                    file.unsealed["later changed values, which are"] += 1
    for key in sorted(missing) if is_whole else ():
        problem("%s is missing" % " ".join(key))
    problem.notes.append(file.name + " is as of the export and not sealed")
    return file.result()


def check_partner_changes(file):
    pack, problem, latest = file.pack, file.problem, {}
    sealed, still_open = iter(sealed_changes(pack)), pack.is_open_at_end()
    for cells, row in read_values(file, CHANGE):
        event, details, change = next(sealed, (None, None, None))
        if event is None:
            file.unsealed["changes"] += 1
            if not still_open:
                problem("a change by event %s was not sealed" % cells[0])
        else:
            values = {name: event[name] for name in EVENT if name in CHANGE}
            number = details.get("import_event_id")
            values.update(partner_id=event["subject"], import_event_id=None if number is None else str(number))
            file.compare("a change by event " + event["event_id"], CHANGE, cells, values)
            if not isinstance(change, dict) or any(
                not is_value(row.get(name), change.get(name), file.csv) for name in ("field", "old", "new")
            ):
                problem("a change by event %s is not as it was sealed" % event["event_id"])
        key = tuple(uncover(row.get(name) or "", file.csv) for name in ("partner_id", "field"))
        old, known = row.get("old"), latest.get(key) if key in latest or pack.from_the_start else row.get("old")
        if old != known and not (is_empty(old) and is_empty(known)):
            problem("%s of %s differs from its old value in event %s" % (key[1], key[0], cells[0]))
        latest[key] = row.get("new")
    for event, _, _ in sealed:
        problem("a change by event %s is missing" % event["event_id"])
    return file.result()


def sealed_changes(pack):
    """(event, its details, one of its changes), in order."""
    for event in pack.facts["audit_events"]:
        if event["action"] not in ("partner.create", "partner.update"):
            continue
        details = parse_json(event["details"] or "{}", "the details of event %s" % event["event_id"])
        changes = details.get("changes") if isinstance(details, dict) else None
        for change in changes if isinstance(changes, list) else ():
            yield event, details, change


def check_dictionary(file):
    expected = [
        (name, column) for name in file.pack.manifest.data if name.partition(".")[2] in FORMATS for column in columns_of(name)
    ]
    found = []
    for cells, _, _ in file.rows(["file", "column", "type", "meaning"]):
        found.append(tuple(cells[:2]))
        if cells[2] not in TYPES or cells[3] == "":
            file.problem("%s of %s has no type or meaning" % (cells[1], cells[0]))
    if found != expected:
        file.problem("it does not have exactly the columns of the data files, in order")
    file.problem.notes.append("dictionary.csv: meanings are for people and are not compared")
    return file.result()


def columns_of(name):
    kind, _, fmt = name.partition(".")
    if kind != "invoices" or fmt == "csv":
        return COLUMNS_OF_FILE[kind]
    nested = {"lines": LINE_JSON, "pdf": ["sha256", "bytes"], "email": ["status", "to", "message_id", "sent_at"]}
    return [each for name in INVOICE_JSON for each in [name, *("%s.%s" % (name, own) for own in nested.get(name, ()))]]


COLUMNS_OF_FILE = {
    "ledger": LEDGER,
    "invoices": INVOICE,
    "invoice-lines": LINE,
    "voids": VOID,
    "write-offs": WRITE_OFF,
    "openings": CARRIED,
    "events": EVENT,
    "payments": PAYMENT + ["applied", "reversed", "unapplied", "status"],
    "payment-moves": ["payment_id"] + MOVE,
    "credit-moves": ["credit_note"] + MOVE,
    "bank-lines": BANK_ROW,
    "partners": PARTNER,
    "policies": POLICY,
    "partner-changes": CHANGE,
    "opening-balances": ["account", "currency", "amount"],
    "journal": POSTING,
    "gl-exports": GL_EXPORT,
    "gl-lines": GL_LINE,
}
DATA_CHECKS = {
    "voids": check_voids,
    "write-offs": check_write_offs,
    "openings": check_carried,
    "bank-lines": check_bank_lines,
    "partners": lambda file: check_partners(file, PARTNER, 1),
    "policies": lambda file: check_partners(file, POLICY, 2),
    "partner-changes": check_partner_changes,
    "dictionary": check_dictionary,
    "ledger": check_ledger,
    "invoices": check_invoices,
    "invoice-lines": check_invoice_lines,
    "events": check_events,
    "payments": check_payments,
    "payment-moves": lambda file: check_moves(file, "payment_id", payment_moves(file.pack)),
    "credit-moves": lambda file: check_moves(file, "credit_note", credit_moves(file.pack)),
    "opening-balances": check_opening,
    "journal": check_journal,
    "gl-exports": check_gl_exports,
    "gl-lines": check_gl_lines,
    "journal.ledger": check_text_journal,
    "journal.beancount": check_text_journal,
}

# --- An earlier pack, and held seals ------------------------------------------------------------------------------------


def check_previous(pack, folder, problem):
    def strict(name, work, refuses=False):
        found = Findings()
        _, value = work(found)
        if found.count:
            raise Malformed("%s: %s: %s" % (folder, name, found.shown[0]))
        return value

    earlier = Pack(folder, strict)
    if earlier.manifest.installation != pack.manifest.installation:
        problem("%s belongs to the installation %s" % (folder, earlier.manifest.installation))
    joined = False
    for now, then, of in ((pack.records, earlier.records, ""), (pack.books, earlier.books, "the books of ")):
        known = seals_of(now)
        for month, record in then.items():
            if month not in known:
                if pack.manifest.first <= month <= pack.manifest.last:
                    problem("%s%s had %s, and is not sealed now" % (of, month, record.seal))
                continue
            joined = joined or of == ""
            if known[month] != record.seal:
                problem("%s%s had %s, and has %s" % (of, month, record.seal, known[month]))
    known = seals_of(pack.checkpoint)
    then = {each.number: each.seal for _, _, each in earlier.checkpoints if isinstance(each, Checkpoint)}
    for number, seal in then.items():
        if known.get(number, seal) != seal:
            problem("checkpoint %s had %s, and has %s" % (number, seal, known[number]))
    lowest = min(map(int, known), default=0)
    if str(lowest) not in then and any(int(number) <= lowest for number in then):
        problem("checkpoint %d is not in %s" % (lowest, folder))
    if not joined:
        problem("%s was sealed after a month that is not in %s" % (pack.first.month, folder))
    before = earlier.records.get(pack.first.previous[0]) if pack.first.previous else None
    if before:
        if pack.first.first != before.last + 1:
            problem("facts begin at %d, and end at %d in %s" % (pack.first.first, before.last, folder))
        lowest, highest = {}, {}
        for each in pack.facts["documents"] + pack.facts["skipped_numbers"]:
            series, number = each["series"], given(each)[0]
            lowest[series] = min(number, lowest.get(series, number))
        for each in earlier.facts["documents"] + earlier.facts["skipped_numbers"]:
            if each["sealed_in"] < pack.first.month:
                highest[each["series"]] = max(given(each)[1], highest.get(each["series"], 0))
        for series, number in lowest.items():
            if series not in highest and not earlier.from_the_start:
                continue
            if number != highest.get(series, 0) + 1:
                problem("%s begins at %d, after %d in the earlier pack" % (series, number, highest.get(series, 0)))
    return "%s of %s" % (many(len(earlier.records), "month"), folder), None


def seals_of(records):
    """The seals of these months, and of the month before the first."""
    seals = {month: record.seal for month, record in records.items()}
    first = next(iter(records.values()), None)
    if first and first.previous:
        seals.setdefault(*first.previous)
    return seals


def read_note(path, kind, witnesses, keys, problem):
    """The name and the seal of a record in a signed note."""
    text = read_small("", path).replace("\r\n", "\n").rstrip("\n") + "\n"
    if re.search("[\x00-\x09\x0b-\x1f]", text):
        raise Malformed(path + ": has a control character")
    text, _, lines = text.rpartition("\n\n")
    record, signatures = kind(text + "\n", path), parse_signatures(lines[:-1].split("\n"), path)
    by_witness, by_key = (count_valid(each, record.text, signatures, path, problem) for each in (witnesses, keys))
    if not (by_witness if witnesses else by_key):
        problem(path + ": is not signed by a key or a witness that you hold")
    return record.number if kind is Checkpoint else record.month, record.seal


def parse_held(given, option, kind, witnesses, keys):
    """For each, a function that returns its name and seal, and its problem."""
    held = []
    for each in given or []:
        name, equals, seal = each.partition("=")
        if os.path.isfile(each):
            if not keys and not witnesses:
                raise Unusable("%s is a note: give your own key with --witness, or the operator's with --key" % each)
            held.append(lambda problem, path=each: read_note(path, kind, witnesses, keys, problem))
            continue
        if not equals or not (is_number(name) if kind is Checkpoint else is_month(name)):
            example = "a checkpoint and its seal: --checkpoint 12=5f0c…" if kind is Checkpoint else "a month and a seal: --%s 2026-07=5f0c…" % option
            raise Unusable("'%s' does not name %s" % (each, example))
        if not re.fullmatch("[0-9A-Fa-f]{64}", seal):
            raise Unusable("'%s' is not a whole seal: it has 64 digits from 0 to f, not the 16 in a subject" % seal)
        held.append(lambda problem, own=(name, seal.lower()): own)
    return held


def check_held(report, first, last, given):
    """`given` has the held seals, the records to compare them with, and their labels."""
    apart = []

    def compare(problem):
        compared = 0
        for held, records, of in given:
            known = seals_of(records)
            for read in held:
                name, seal = read(problem)
                if name in known:
                    compared += 1
                    if known[name] != seal:
                        problem(
                            "%s%s has %s, but you gave %s: check your copy. If it matches, %s%s was sealed again" % (of, name, known[name], seal, of, name)
                        )
                elif is_month(name) and first <= name <= last:
                    problem("%s%s was sealed but is open in this pack" % (of, name))
                else:
                    apart.append(of + name)
        return "%d compared" % compared, None

    if any(held for held, _, _ in given):
        report.check("held seals", compare)
    if apart and not report.failed:
        raise Unusable("%s: this pack (%s to %s) does not contain it. Request one that does" % (", ".join(apart), first, last))


# --- Proofs -----------------------------------------------------------------------------------------------------------

PROOF = "format version subject records facts".split()
FACT = "month table columns columns_path line index leaves path".split()
SUBJECT = "(row|payment|event) (%s)|(document) ([A-Z]+-[0-9]{4}-[0-9]{6,15})" % NUMBER


def climb(leaf, index, size, path):
    """The root by the recursive definition of RFC 9162, 2.1.3.1; None if the path does not have its length."""
    if size == 1 or not path:
        return leaf if size == 1 and not path else None
    split = 1 << (size - 1).bit_length() - 1
    *rest, sibling = path
    if index < split:
        left, right = climb(leaf, index, split, rest), sibling
    else:
        left, right = sibling, climb(leaf, index - split, size - split, rest)
    return None if left is None or right is None else hashlib.sha256(b"\1" + left + right).digest()


def leads_to(root, line, index, size, path, place):
    siblings = [bytes.fromhex(want_text(each, HASH, place)) for each in want_list(path, place)]
    found = climb(leaf_of(line.encode()), index, size, siblings) if index < size and len(siblings) < 64 else None
    if found is None or found.hex() != root:
        raise Malformed(place + ": its path does not lead to the root")


class ProvenFact:
    """A fact of a proof, under the root of its record."""

    def __init__(self, value, records, place):
        self.month, self.table, columns, columns_path, line, index, leaves, path = take(value, FACT, place)
        record = records.get(self.month if isinstance(self.month, str) else None)
        if record is None or not isinstance(self.table, str) or not isinstance(columns, str) or not isinstance(line, str):
            raise Malformed(place + ": has no record in the proof")
        self.index, leaves = want_number(index, place), want_number(leaves, place)
        self.record, self.header = record, (columns, columns_path)
        names, fields = columns.split("\t"), line.split("\t")
        if not all(map(is_name, names)) or len(set(names)) != len(names) or len(fields) != len(names):
            raise Malformed(place + ": its line does not have its columns")
        if "\r" in line or "\n" in line:
            raise Malformed(place + ": its line is not one line")
        if self.table == "ledger_rows":
            size, root = record.rows, record.root
            if names != record.columns or columns_path is not None:
                raise Malformed(place + ": its columns are not those of the record")
        else:
            size, root = record.tables.get(self.table, (None, None))
            if size is None or self.index < 1:
                raise Malformed(place + ": has no table in the record")
            size += 1
            leads_to(root, columns, 0, size, columns_path, place + ": columns")
        if leaves != size:
            raise Malformed(place + ": its number of leaves is not that of the record")
        leads_to(root, line, self.index, size, path, place)
        self.row = {name: read_field(field, place) for name, field in zip(names, fields)}
        self.number = 0
        if self.table != "ledger_rows":
            number = self.row["fact_id"] if names[0] == "fact_id" else None
            if not is_number(number or "") or not record.first <= int(number) <= record.last:
                raise Malformed(place + ": its fact_id is not in the range of the record")
            self.number = int(number)

    def value(self, column, right=is_number):
        value = self.row.get(column)
        if value is None or not right(value):
            raise Malformed("%s of %s: %s does not have its form" % (self.table, self.month, column))
        return value


def read_proof(value):
    format_, version, subject, records, facts = take(value, PROOF, "proof")
    if format_ != "reckoner-proof" or type(version) is not int or version != 2:
        raise Malformed("proof: is not of version 2")
    found = re.fullmatch(SUBJECT, subject) if isinstance(subject, str) else None
    if not found:
        raise Malformed("proof: its subject is unknown")
    by_month, before = {}, None
    for each in want_list(records, "records"):
        month, seal, text = take(each, ["month", "seal", "record"], "records")
        if not isinstance(text, str):
            raise Malformed("records: a record is not a text")
        record = SealRecord(text, "record")
        if (record.month, record.seal) != (month, seal):
            raise Malformed("records: that of %s is for %s and hashes to %s" % (month, record.month, record.seal))
        if before and (before.month >= month or before.installation != record.installation or record.first <= before.last):
            raise Malformed("records: %s does not follow %s" % (month, before.month))
        if before and record.previous[0] == before.month and record.previous[1] != before.seal:
            raise Malformed("records: %s names another seal of %s" % (month, before.month))
        if before and record.previous[0] > before.month and record.previous[0] in by_month:
            raise Malformed("records: %s does not follow the month before it" % month)
        by_month[month] = before = record
    proven = [ProvenFact(each, by_month, "facts, %d" % at) for at, each in enumerate(want_list(facts, "facts"), 1)]
    places = [(fact.month, fact.table, fact.index) for fact in proven]
    if not proven or places != sorted(set(places)) or {fact.month for fact in proven} != set(by_month):
        raise Malformed("facts: are not in order, or a record has none")
    numbers = [fact.number for fact in proven if fact.number]
    if len(set(numbers)) != len(numbers):
        raise Malformed("facts: a fact_id occurs twice")
    for one, other in zip(proven, proven[1:]):
        if (one.month, one.table) == (other.month, other.table) and (one.header != other.header or one.number > other.number):
            raise Malformed("facts: those of %s in %s differ in their columns, or order" % (one.table, one.month))
    kind, number = [each for each in found.groups() if each is not None]
    return subject, kind, number, by_month, proven


def check_subject(kind, number, facts):
    """The facts of a subject; no others are allowed."""
    by_table = defaultdict(list)
    for fact in facts:
        by_table[fact.table].append(fact)

    def one(table, column):
        own = by_table.pop(table, [])
        if len(own) != 1 or own[0].row.get(column) != number:
            raise Malformed("facts: not one of %s with this %s" % (table, column))
        return own[0]

    if kind == "row":
        fact = one("ledger_rows", "entry_id")
        price, cut, share = (Decimal(fact.value(name, is_amount)) for name in SUMS)
        posted = fact.value("posted_month", is_month)
        if price != cut + share:
            raise Malformed("facts: the row does not add up")
        if posted != fact.month and (fact.record.previous or posted > fact.month):
            raise Malformed("facts: the row was posted to %s" % posted)
    elif kind == "event":
        one("audit_events", "event_id")
    elif kind == "payment":
        one("payments", "payment_id")
        for table in [table for table in by_table if table not in ("audit_events", "ledger_rows")]:
            if all(fact.row.get("payment_id") == number for fact in by_table[table]):
                del by_table[table]
    else:
        check_proven_document(one("documents", "number"), by_table)
    if by_table:
        raise Malformed("facts: %s do not belong to the subject" % ", ".join(by_table))


def check_proven_document(document, by_table):
    own = document.row.get("document_id")
    lines = by_table.pop("document_lines", [])
    others = [by_table.pop(table, []) for table in ("document_pdfs", "document_e_invoices", "voids")]
    if own is None or any(fact.row.get("document_id") != own for facts in [lines] + others for fact in facts):
        raise Malformed("facts: not all belong to the document")
    if any(len(facts) > 1 or any(fact.month < document.month for fact in facts) for facts in others):
        raise Malformed("facts: the PDF, the e-invoice or the void occurs twice or is older than the document")
    purpose = document.row.get("purpose")
    number = number_of({**document.row, "purpose": purpose, "sequence": document.value("sequence")})
    if document.row["number"] != number:
        raise Malformed("facts: the document is number %s" % number)
    if purpose in ("adjustment", "opening"):
        if lines:
            raise Malformed("facts: the document has no lines")
        return
    if not lines or any(fact.month != document.month for fact in lines):
        raise Malformed("facts: the lines of the document are missing, or of another month")
    if [fact.value("position") for fact in lines] != [str(at) for at in range(1, len(lines) + 1)]:
        raise Malformed("facts: the lines are not 1, 2, 3 and so on")
    for name in SUMS:
        if sum(Decimal(fact.value(name, is_amount)) for fact in lines) != Decimal(document.value(name, is_amount)):
            raise Malformed("facts: the lines do not add up to the document in " + name)
    counts = [int(fact.value("count")) for fact in lines]
    of = "enrollments" if purpose == "missing_shares" else "entries"
    if 0 in counts or sum(counts) != int(document.value(of)):
        raise Malformed("facts: the lines do not count the %s of the document" % of)


def check_proof(report, path, held):
    def work(_):
        subject, kind, number, records, facts = read_proof(parse_document(read_small("", path), "proof"))
        check_subject(kind, number, facts)
        for fact in facts:
            say("      %s %s" % (fact.month, fact.table))
            for column, value in fact.row.items():
                if value is not None:
                    say("        %s = %s" % (column, value))
        return "%s, under the seal of %s" % (subject, " and ".join(records)), records

    records = report.check("proof", work, True)
    check_held(report, min(records), max(records), [(held, records, "")])
    for month, record in records.items():
        say("seal  %s  %s" % (month, record.seal))


# --- The command ------------------------------------------------------------------------------------------------------


def check_pack(report, folder, previous, held, keys):
    pack = Pack(folder, report.check)
    report.check("seals", lambda problem: check_seals(pack, problem))
    if keys or pack.facts["seal_signatures"] or any(name.endswith(".sig") for name in pack.names):
        report.check("signatures", lambda problem: check_signatures(pack, keys, problem))
    if pack.facts["seal_time_stamps"] or any(name.endswith(".tsr") for name in pack.names):
        report.check("time stamps", lambda problem: check_time_stamps(pack, problem))
    if pack.manifest.kind == "ledger":
        report.check("rows", lambda problem: check_rows(pack, problem))
    if pack.checkpoints:
        report.check("checkpoints", lambda problem: check_checkpoints(pack, problem))
    report.check("documents", lambda problem: check_documents(pack, problem))
    report.check("books", lambda problem: check_books(pack, problem))
    if pack.facts["approval_decisions"] or any(one_person(each) is not None for each in pack.facts["audit_events"]):
        report.check("approvals", lambda problem: check_approvals(pack, problem))
    note_one_person(pack)
    say("note  README.txt is for people and is not compared")
    for name in sorted(pack.names):
        if name.endswith(".parquet"):
            say("note  %s is compared only with the manifest" % name)
    for each in pack.manifest.months:
        if each["seal"] is None:
            say("note  %s is open: it is not sealed" % each["month"])
    if pack.manifest.months[-1]["month"] < pack.manifest.last:
        say("note  nothing after %s is in this pack" % pack.manifest.months[-1]["month"])
    for name in [*pack.manifest.data, "dictionary.csv"]:
        work = DATA_CHECKS.get(name) or DATA_CHECKS[name.partition(".")[0]]
        report.check(name, lambda problem: work(DataFile(pack, name, problem)))
    if previous is not None:
        report.check("previous", lambda problem: check_previous(pack, previous, problem))
    check_held(
        report,
        pack.manifest.first,
        pack.manifest.last,
        [(held[0], pack.records, ""), (held[1], pack.books, "the books of "), (held[2], pack.checkpoint, "checkpoint ")],
    )
    for what, records in (("seal ", pack.records), ("books", pack.books), ("checkpoint", pack.checkpoint)):
        for month, record in records.items():
            say("%s %s  %s" % (what, month, record.seal))


def run(report, arguments):
    keys, witnesses = ([parse_key(each) for each in given or []] for given in (arguments.key, arguments.witness))
    options = (("seal", SealRecord), ("books-seal", BooksRecord), ("checkpoint", Checkpoint))
    held = [parse_held(getattr(arguments, name.replace("-", "_")), name, kind, witnesses, keys) for name, kind in options]
    place = arguments.place
    if os.path.isdir(place):
        check_pack(report, place, arguments.previous, held, keys)
    elif not os.path.exists(place):
        raise Unusable(place + " does not exist")
    elif place.endswith(".zip"):
        raise Unusable("%s is a .zip: unzip it into an empty folder, and name that folder" % place)
    elif not place.endswith(".json") or not os.path.isfile(place):
        raise Unusable(place + " is neither a folder nor a .json file")
    elif arguments.previous is not None or held[1] or held[2]:
        raise Unusable("a proof can be compared only with --seal")
    else:
        check_proof(report, place, held[0])


def main():
    parser = argparse.ArgumentParser(description="Checks a pack exported by Reckoner, or a proof.")
    parser.add_argument("place", metavar="PACK|PROOF.json")
    parser.add_argument("--previous", metavar="PACK")
    parser.add_argument("--seal", action="append", metavar="MONTH=SEAL")
    parser.add_argument("--books-seal", action="append", metavar="MONTH=SEAL")
    parser.add_argument("--checkpoint", action="append", metavar="NUMBER=SEAL")
    parser.add_argument("--key", action="append", metavar="VKEY")
    parser.add_argument("--witness", action="append", metavar="VKEY")
    arguments = parser.parse_args()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    report = Report()
    status = 0
    try:
        run(report, arguments)
        status = 1 if report.failed else 0
    except Refused:
        status = 1
    except (Unusable, OSError) as error:
        status = 1 if report.failed else 2
        say("Cannot check: %s" % error, sys.stderr)
    if status == 0:
        say("All checks hold.")
    if status == 1:
        say("%d %s: %s." % (report.total, "problem" if report.total == 1 else "problems", ", ".join(report.failed)))
    return status


if __name__ == "__main__":
    sys.exit(main())
