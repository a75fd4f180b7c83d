"""A partner's program in Python: the standard library, and every amount a Decimal.

    client.py sell              sells one quote, raises it and gives a part of it back; prints its id
    client.py documents QUOTE   reads every document, its PDF and its rows, and the events, and finds the quote in them
    client.py settle            sells one quote of a connected account, and sends the settlement file of its transfer

BASE_URL, PARTNER_ID, CLIENT_ID and CLIENT_SECRET are in the environment.
"""

import csv
import hashlib
import io
import json
import os
import re
import sys
import urllib.error
import urllib.request
import uuid
from decimal import Decimal


class Problem(Exception):
    """A refusal: programs branch on its code."""

    def __init__(self, status, body):
        super().__init__(f"{status} {body.get('code')}: {body.get('detail')}")
        self.status, self.code, self.body = status, body.get("code"), body


def numbers(text):
    """JSON with each number as it is written."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


class Service:
    def __init__(self, base_url, partner_id, client_id, client_secret):
        self.base_url = base_url
        self.headers = {"X-Service-Partner-Id": partner_id}
        metadata, _ = self.call("GET", "/.well-known/oauth-authorization-server")
        credentials = {"client_id": client_id, "client_secret": client_secret}
        token, _ = self.call("POST", metadata["token_endpoint"], credentials)
        self.headers["Authorization"] = f"{token['token_type']} {token['access_token']}"

    def call(self, method, path, body=None, **headers):
        """The answer, JSON or bytes, and its status and headers. A dict is sent as JSON, a str as CSV."""
        data, kind = None, {}
        if isinstance(body, dict):
            data, kind = json.dumps(body, default=str).encode(), {"Content-Type": "application/json"}
        elif isinstance(body, str):
            data, kind = body.encode(), {"Content-Type": "text/csv"}
        url = path if "://" in path else self.base_url + path
        request = urllib.request.Request(url, data, {**self.headers, **kind, **headers}, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                content, is_json = answer.read(), answer.headers.get_content_type() == "application/json"
                return (numbers(content.decode()) if is_json else content), answer
        except urllib.error.HTTPError as error:
            raise Problem(error.code, numbers(error.read().decode())) from None

    def get(self, path):
        return self.call("GET", path)[0]

    def post(self, path, body=None, **headers):
        return self.call("POST", path, body, **headers)[0]

    def pages(self, path):
        """All items of a list, by the links from page to page."""
        while path:
            items, answer = self.call("GET", path)
            yield from items
            following = re.search(r'<([^>]*)>; rel="next"', answer.headers["Link"] or "")
            path = following and following[1]


def refused(code, action):
    """The problem with which an action is refused."""
    try:
        action()
    except Problem as problem:
        assert problem.code == code, problem
        return problem
    raise AssertionError(f"not refused with {code}")


def accepted_quote(service):
    policy = next(each for each in service.pages("/api/v1/policies?limit=1") if each["active"] and each["price"])
    wanted, key = {"policy_id": policy["policy_id"], "insured_amount": Decimal("250.10")}, {"Idempotency-Key": str(uuid.uuid4())}
    quote = service.post("/api/v1/quote", wanted, **key)
    again, answer = service.call("POST", "/api/v1/quote", wanted, **key)
    assert again == quote and answer.headers["Idempotent-Replayed"] == "true"
    assert quote["spotPrice"] == quote["partnerCut"] + quote["invoiceAmount"]
    here = f"/api/v1/quote/{quote['quote_id']}"
    accepted = service.get(f"{here}/accept")
    assert accepted == service.post(f"{here}/accept")
    return here, accepted


def sell(service):
    here, accepted = accepted_quote(service)
    requote = service.post(f"{here}/requote", {"insured_amount": "300"})
    raised = service.post(f"/api/v1/requote/{requote['requote_id']}/accept")
    assert raised["incrementalSpotPrice"] == requote["incrementalSpotPrice"]
    part = {"reversal_id": str(uuid.uuid4()), "spotPrice": "-5.00", "partnerCut": "-1.50", "invoiceAmount": "-3.50"}
    reversal = service.post(f"{here}/reverse", part)
    assert reversal == service.post(f"{here}/reverse", part) and reversal["spotPrice"] == Decimal("-5.00")
    assert service.get(here)["status"] == "reversed"
    more = {**part, "reversal_id": str(uuid.uuid4()), "spotPrice": "-500.00", "invoiceAmount": "-498.50"}
    assert refused("reversal_exceeds", lambda: service.post(f"{here}/reverse", more)).status == 422
    assert refused("quote_reversed", lambda: service.post(f"{here}/requote", {"insured_amount": "400"})).status == 422
    return {"quote_id": accepted["quote_id"]}


def documents(service, quote_id):
    bills = []
    for listed in service.pages("/api/v1/invoices?limit=2"):
        here = f"/api/v1/invoices/{listed['number']}"
        assert service.get(here) == listed
        assert hashlib.sha256(service.get(f"{here}/pdf")).hexdigest() == listed["pdf"]["sha256"]
        rows = list(csv.DictReader(io.StringIO(service.get(f"{here}/rows").decode("utf-8-sig"))))
        if listed["document"] == "invoice":
            assert sum(Decimal(row["invoiceAmount"]) for row in rows) == Decimal(listed["invoiceAmount"])
        if any(row["quote_id"] == quote_id for row in rows):
            bills.append(listed["number"])
        if listed["payment_link"]:
            assert listed["number"] in service.get(listed["payment_link"]).decode()
    refused("invoice_unknown", lambda: service.get("/api/v1/invoices/INV-0"))
    return {"bills": bills, "events": events_of(service, quote_id)}


def events_of(service, quote_id):
    """The types of the quote's events, read in order as a program does that has handled none yet."""
    types, position = [], 0
    while events := service.get(f"/api/v1/events?limit=3&cursor={position}"):
        for event in events:
            assert event["position"] == position + 1
            position = event["position"]
            if event["data"].get("quote_id") == quote_id:
                types.append(event["type"])
    return types


def settle(service):
    _, accepted = accepted_quote(service)
    assert accepted["split"]["share"] == accepted["invoiceAmount"]
    file = f"quote_id,transfer,payment,amount\n{accepted['quote_id']},tr_2,py_2,{accepted['invoiceAmount']}\n"
    sent, answer = service.call("POST", "/api/v1/settlement-files", file)
    assert (answer.status, sent["matched"], sent["unmatched"]) == (201, 1, [])
    again, answer = service.call("POST", "/api/v1/settlement-files", file)
    assert answer.status == 200
    assert again == service.get(f"/api/v1/settlement-files/{hashlib.sha256(file.encode()).hexdigest()}")
    wrong = lambda: service.post("/api/v1/settlement-files", file.replace("py_2,", "py_3,x"))
    [problem] = refused("settlement_invalid", wrong).body["problems"]
    assert (problem["line"], problem["field"], problem["code"]) == (2, "amount", "amount_malformed")
    return {"quote_id": accepted["quote_id"]}


if __name__ == "__main__":
    named = [os.environ[name] for name in ("BASE_URL", "PARTNER_ID", "CLIENT_ID", "CLIENT_SECRET")]
    actions = {"sell": sell, "documents": documents, "settle": settle}
    print(json.dumps(actions[sys.argv[1]](Service(*named), *sys.argv[2:])))
