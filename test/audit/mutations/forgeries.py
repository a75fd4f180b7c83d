"""Forgeries that change several columns or lines so that they fit each other. Each is made for one rule."""
from changes import NULL, Change, at, moved_day, with_roots

FORGERIES = []


def forgery(log):
    """Registers a function that gives the removed and the added lines of one log; its docstring says what it forges."""
    return lambda make: FORGERIES.append((log, make)) or make


def all_forgeries(ledgers):
    for log, make in FORGERIES:
        ledger = ledgers[log]
        removed, added = make(Lines(ledger))
        yield ledger, with_roots(ledger, Change('several columns', '', make.__doc__, removed, added))


class Lines:
    """The lines of a log by kind and by the texts of their columns."""
    def __init__(self, ledger):
        self.ledger = ledger
        self.end = ledger.lines[-1].number

    def find(self, kind, **columns):
        """The first line with these texts; a function decides instead of a text where one is given."""
        return self.all(kind, **columns)[0]

    def all(self, kind, **columns):
        names = self.ledger.forms[kind].names
        fits = lambda text, wanted: wanted(text) if callable(wanted) else text == wanted
        return [line for line in self.ledger.of_kind.get(kind, [])
                if all(fits(line.fields[names.index(name)], wanted) for name, wanted in columns.items())]

    def get(self, line, name):
        return line.fields[self.ledger.forms[line.kind].names.index(name)]

    def change(self, line, **columns):
        names = self.ledger.forms[line.kind].names
        return line.with_fields({names.index(name): text for name, text in columns.items()})

    def last_import(self):
        """The event of the last import, and its rows, which are in an open month."""
        event = self.all('audit_events', action='ledger.import')[-1]
        return event, self.all('ledger_rows', event_id=self.get(event, 'event_id'))


def changed(line, other):
    return [line], [other]


@forgery('clients')
def policy(lines):
    """the policy of a sale in an open month, which its partner never had"""
    _, rows = lines.last_import()
    return changed(rows[0], lines.change(rows[0], policy_id='unknown'))


@forgery('clients')
def arrangement(lines):
    """the arrangement of one of two sales in an open month"""
    _, rows = lines.last_import()
    return changed(rows[0], lines.change(rows[0], arrangement='connected_account'))


@forgery('clients')
def time_zone(lines):
    """the time zone of a sale, with the beginning of its month in that zone"""
    _, rows = lines.last_import()
    zones = lines.all('month_zones', time_zone=lines.get(rows[0], 'time_zone'))
    again = [at(lines.change(zone, time_zone='America/Toronto'), zone.number + 1) for zone in zones]
    return [rows[0]], [lines.change(rows[0], time_zone='America/Toronto'), *again]


@forgery('clients')
def terms(lines):
    """the terms and the due day of an invoice"""
    line = lines.find('documents', document='invoice', purpose='month', replaces=NULL)
    days = int(lines.get(line, 'terms_days')) + 1
    return changed(line, lines.change(line, terms_days=str(days), due_on=moved_day(lines.get(line, 'due_on'), 1)))


@forgery('clients')
def close_event(lines):
    """the event of a close that closed no month"""
    event = lines.all('audit_events', action='month.close')[-1]
    return [], [at(lines.change(event, event_id='900000', subject='2026-11'), lines.end + 1)]


@forgery('clients')
def acceptance_without_row(lines):
    """the event of an acceptance without a row"""
    event = lines.all('audit_events', action='quote.accept')[-1]
    return [], [at(lines.change(event, event_id='900000', subject='q-900000'), lines.end + 1)]


@forgery('approvals')
def approver(lines):
    """the user who approved, in the decision and in its event, by one who is not an approver"""
    decision = lines.find('approval_decisions', decision='approve')
    event = lines.find('audit_events', event_id=lines.get(decision, 'event_id'))
    approvers = {lines.get(role, 'user_id') for role in lines.all('user_roles', role='approver')}
    others = [lines.get(user, 'user_id') for user in lines.all('users') if user.number < event.number]
    other = [each for each in others if each not in {*approvers, lines.get(decision, 'requested_by')}][-1]
    return [decision, event], [lines.change(decision, decided_by=other), lines.change(event, user_id=other)]

