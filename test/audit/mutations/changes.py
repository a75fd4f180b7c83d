"""The changes of an honest log: each column of each kind with other values, lines that are gone or occur twice, and acts."""
import base64
import datetime
import hashlib
import re

MONTH = re.compile('[0-9]{4}-(0[1-9]|1[0-2])').fullmatch
NULL = '\\N'


class Change:
    """What is done to a kind's column ('' for whole lines), and the lines that go and come."""
    def __init__(self, kind, column, what, removed, added):
        self.kind, self.column, self.what, self.removed, self.added = kind, column, what, removed, added


def spread(values, count):
    """So many of a list, from its beginning to its end."""
    if len(values) <= count:
        return list(values)
    return [values[index * (len(values) - 1) // max(count - 1, 1)] for index in range(count)]


# ---- Other values, by type -------------------------------------------------------------------------------------------
def decimal(units, digits):
    text = str(abs(units)).rjust(digits + 1, '0')
    whole, part = (text[:-digits], text[-digits:].rstrip('0')) if digits else (text, '')
    return '-' * (units < 0) + whole + ('.' + part if part else '')


def in_units(text, digits):
    whole, _, part = text.partition('.')
    return int(whole + part.ljust(digits, '0'))


def other_decimals(text, digits):
    units = in_units(text, digits)
    yield from (decimal(each, digits) for each in (units + 1, units * 3 + 10 ** digits * 100, -units))


def moved_month(text, months):
    year, month = map(int, text.split('-'))
    at = 12 * year + month - 1 + months
    return '%04d-%02d' % (at // 12, at % 12 + 1)


def moved_day(text, days):
    return (datetime.date.fromisoformat(text) + datetime.timedelta(days)).isoformat()


def other_times(text):
    yield text[:-2] + ('1' if text[-2] != '1' else '2') + 'Z'
    yield from (moved_day(text[:10], days) + text[10:] for days in (-1, 1, -31))


def other_texts(text):
    if MONTH(text):
        yield from (moved_month(text, months) for months in (-1, 1))
    elif re.fullmatch('([0-9a-f]{2}){16,}', text):
        yield hashlib.sha256(text.encode()).hexdigest()[:len(text)]
    else:
        yield text + 'x'
        yield ''


def other_commitments(text):
    yield '#%s' % base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    yield ''


def other_pair(pair):
    """Another value of a pair of a map, of the same type."""
    path, sign, value = re.fullmatch('([^=:]*)([=:])(.*)', pair, re.DOTALL).groups()
    if sign == '=' and MONTH(value):
        return '%s=%s' % (path, moved_month(value, 1))
    if sign == '=' and re.fullmatch('-?[0-9]+(\\.[0-9]+)?', value):
        return '%s=%s' % (path, str(int(value) + 1) if '.' not in value else value[:-1] + str((int(value[-1]) + 1) % 9 + 1))
    if sign == '=':
        return '%s=%sx' % (path, value)
    known = {'true': 'false', 'false': 'true', 'null': '1', '[]': 'null', '{}': 'null'}
    return '%s:%s' % (path, known[value] if value in known else str(int(float(value)) + 1))


def other_maps(text, reach):
    pairs = text.split('&')
    for pair in spread(pairs, reach):
        at = pairs.index(pair)
        yield '&'.join([*pairs[:at], other_pair(pair), *pairs[at + 1:]])
    if len(pairs) > 1:
        for pair in spread(pairs, reach):
            yield '&'.join(each for each in pairs if each is not pair)
    if not pairs[0].startswith((':', '=')):
        yield '&'.join(sorted([*pairs, 'other=x'], key=lambda pair: re.match('[^=:]*', pair)[0].encode()))


def other_values(kind, text, digits, reach):
    if kind == 'int':
        yield from (str(int(text) + 1), str(int(text) + 1000000))
    elif kind == 'amount':
        yield from other_decimals(text, digits)
    elif kind == 'rate':
        yield from other_decimals(text, 4)
    elif kind == 'number':
        yield from other_decimals(text, len(text.partition('.')[2]))
    elif kind == 'day':
        yield from (moved_day(text, days) for days in (-1, 1, -31, 400))
    elif kind == 'time':
        yield from other_times(text)
    elif kind == 'flag':
        yield 'false' if text == 'true' else 'true'
    elif kind == 'hex':
        yield hashlib.sha256(text.encode()).hexdigest()
    elif kind == 'personal':
        yield from other_commitments(text)
    elif kind == 'map':
        yield from other_maps(text, reach)
    else:
        yield from other_texts(text)


SOME_VALUE = {'int': '1', 'amount': '1', 'rate': '19', 'number': '1', 'day': '2026-08-15', 'flag': 'true', 'map': 'a=1',
              'time': '2026-08-15T10:00:00.000000Z', 'personal': '#' + 'A' * 43 + '='}


# ---- Changes of one column -------------------------------------------------------------------------------------------
def column_changes(ledger, kind, place, reach):
    """The changes of a column in a few lines of a kind: those whose values are the most different, and one without value."""
    form = ledger.forms[kind]
    lines, type_, column = ledger.of_kind[kind], form.types[place], form.names[place]
    values = {}
    for line in lines:
        values.setdefault((line.fields[place] == NULL, shape_of(form, line), line.fields[place]), line)
    chosen = [values[key] for key in spread(sorted(values), reach)]
    for line in chosen:
        text, digits = line.fields[place], digits_of(ledger, form, line, place)
        others = [] if text == NULL else list(other_values(type_, text, digits, reach))
        elsewhere = sorted({each.fields[place] for each in lines} - {text, NULL})
        others += spread([each for each in elsewhere if fits(type_, each, digits)], 2 if text == NULL else 1)
        if place not in form.required:
            others += [SOME_VALUE.get(type_, 'x')] if text == NULL else [NULL]
        for other in dict.fromkeys(others):
            if other != text:
                yield Change(kind, column, '%s > %s' % (text, other), [line], [line.with_fields({place: other})])


def shape_of(form, line):
    """What kind of thing a line is about, so that invoices, statements and credit notes are all among the changed lines."""
    names = ('kind', 'action', 'document', 'purpose', 'outcome', 'source', 'direction', 'method')
    return tuple(line.fields[place] for place, name in enumerate(form.names) if name in names)


def digits_of(ledger, form, line, place):
    currency = dict(form.amounts).get(place)
    code = 'USD' if currency is None else line.fields[currency]
    return DIGITS.get(code, 2)


DIGITS = {}


def fits(type_, text, digits):
    return type_ != 'amount' or len(text.partition('.')[2]) <= digits


# ---- Changes of whole lines ------------------------------------------------------------------------------------------
def own_id(form):
    """The place of a line's own id: `hold_id` of holds, but not that of hold_releases, which names a hold."""
    name = form.names[0]
    singular = {'book_balances': '', 'opening_totals': ''}.get(form.kind, form.kind.rstrip('s'))
    is_own = form.types[0] == 'int' and name.endswith('_id') and singular.endswith(name[:-3])
    return 0 if is_own else None


def line_changes(ledger, kind, reach):
    form = ledger.forms[kind]
    shapes = {}
    for line in ledger.of_kind[kind]:
        shapes.setdefault(shape_of(form, line), []).append(line)
    # One of each shape first, so that every kind of event is among them.
    ordered = [line for index in range(reach) for lines in shapes.values() for line in spread(lines, reach)[index:index + 1]]
    for line in ordered[:max(reach, min(len(shapes), 12 * reach))]:
        yield Change(kind, '', 'gone', [line], [])
        yield Change(kind, '', 'twice', [], [at(line, line.number + 1)])
        yield Change(kind, '', 'twice, at the end', [], [at(line, ledger.lines[-1].number + 1)])
        place = own_id(form)
        if place is not None:
            again = line.with_fields({place: str(1 + max(int(each.fields[place]) for each in ledger.of_kind[kind]))})
            yield Change(kind, '', 'twice, with an id of its own', [], [at(again, line.number + 1)])


def at(line, number):
    return type(line)(line.kind, number, line.fields)


def with_sums(ledger, change):
    """The same change by someone who also writes the roots of the partners and the receipts of the rows again."""
    gone = {line.number for line in change.removed}
    removed, added = ledger.receipts_after(gone, change.added)
    for line, root in ledger.roots_after(gone, change.added):
        removed.append(line)
        added.append(line.with_fields({ledger.forms[line.kind].names.index('root'): root}))
    # A receipt that the change itself added may be written again.
    kept = [line for line in change.added if line not in removed]
    removed = [line for line in removed if line not in change.added]
    return Change(change.kind, change.column, change.what, [*change.removed, *removed], [*kept, *added])


# ---- Changes of what events state --------------------------------------------------------------------------------------
def detail_changes(ledgers):
    """Each value that an event of an action states, changed and removed, once for each action and path."""
    known = set()
    for ledger in ledgers:
        form = ledger.forms['audit_events']
        action, place = form.names.index('action'), form.names.index('details')
        for line in ledger.of_kind.get('audit_events', []):
            pairs = line.fields[place].split('&')
            for index, pair in enumerate(pairs):
                path = re.sub('[0-9]+', '0', re.match('[^=:]*', pair)[0])
                key = line.fields[action], path
                if key in known or not path:
                    continue
                known.add(key)
                for what, kept in (('another value', [other_pair(pair)]), ('gone', [])):
                    text = '&'.join([*pairs[:index], *kept, *pairs[index + 1:]]) or ':{}'
                    yield ledger, Change('details', '%s %s' % key, what, [line], [line.with_fields({place: text})])


# ---- Changes of whole acts -------------------------------------------------------------------------------------------
def acts_of(ledger):
    """Each event with the facts that name it and the lines of these facts."""
    acts = {}
    for event in ledger.of_kind.get('audit_events', []):
        acts[event.fields[0]] = [event]
    for line in ledger.lines:
        form = ledger.forms[line.kind]
        if line.kind != 'audit_events' and 'event_id' in form.names:
            acts.get(line.fields[form.names.index('event_id')], []).append(line)
    return list(acts.values())


def act_changes(ledger):
    """An act gone, an act twice, and an act with another amount, day or partner in all of its lines."""
    by_action = {}
    for lines in acts_of(ledger):
        by_action.setdefault(lines[0].fields[2], []).append(lines)
    for action, acts in by_action.items():
        # The first of them, and the last, which may be in a month that is open.
        for lines in spread(acts, 2) if len(acts[-1]) > 1 else acts[-1:]:
            yield Change('acts', action, 'gone', lines, [])
            yield Change('acts', action, 'twice', [], act_again(ledger, lines))
            for what, changed in other_acts(ledger, lines):
                yield with_sums(ledger, Change('acts', action, what, lines, changed))


def act_again(ledger, lines):
    """An act a second time at the end of the log, in which each fact has an id of its own."""
    new_ids, number, again = {}, ledger.lines[-1].number, []
    for line in lines:
        form, place = ledger.forms[line.kind], own_id(ledger.forms[line.kind])
        if place is not None:
            last = max(int(each.fields[place]) for each in ledger.of_kind[line.kind])
            made = sum(1 for name, _ in new_ids if name == form.names[place])
            new_ids[form.names[place], line.fields[place]] = str(last + 1 + made)
    for line in lines:
        form = ledger.forms[line.kind]
        number += 1
        changes = {place: new_ids[name, line.fields[place]] for place, name in enumerate(form.names)
                   if (name, line.fields[place]) in new_ids}
        again.append(at(line.with_fields(changes), number))
    return again


def other_acts(ledger, lines):
    amounts, days, partners = {}, {}, {}
    for line in lines[1:]:
        form = ledger.forms[line.kind]
        for place, _ in form.amounts:
            if line.fields[place] not in (NULL, '0'):
                amounts[line.fields[place]] = digits_of(ledger, form, line, place)
        for place, type_ in enumerate(form.types):
            if type_ == 'day' and line.fields[place] != NULL:
                days[line.fields[place]] = True
            if form.names[place] == 'partner_id' and line.fields[place] != NULL:
                partners[line.fields[place]] = True
    for text, digits in list(amounts.items())[:2]:
        for less in (decimal(in_units(text, digits) - 1, digits), decimal(in_units(text, digits) + 1, digits)):
            yield 'another amount', replaced(ledger, lines, text, less)
    for text in list(days)[:1]:
        yield 'a day earlier', replaced(ledger, lines, text, moved_day(text, -1))
        yield 'a day later', replaced(ledger, lines, text, moved_day(text, 1))
    for text in list(partners)[:1]:
        for other in sorted(partners_of(ledger) - {text})[:1]:
            yield 'another partner', replaced(ledger, lines, text, other)


def partners_of(ledger):
    place = ledger.forms['ledger_rows'].names.index('partner_id')
    return {line.fields[place] for line in ledger.of_kind.get('ledger_rows', [])}


def replaced(ledger, lines, text, other):
    """The lines in which each field and each value of a map that is `text` is `other`."""
    changed = []
    for line in lines:
        form, changes = ledger.forms[line.kind], {}
        for place, type_ in enumerate(form.types):
            field = line.fields[place]
            if field == text and type_ in ('text', 'amount', 'day'):
                changes[place] = other
            elif type_ == 'map':
                pairs = [re.sub('([=:])%s(0*)$' % re.escape(text), lambda found: found[1] + other, pair)
                         for pair in field.split('&')]
                changes[place] = '&'.join(pairs)
        changed.append(line.with_fields(changes))
    return changed
