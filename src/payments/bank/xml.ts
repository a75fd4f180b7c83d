/**
 * XML of banks as plain nodes. An element of camt, or without a namespace, has its name without a prefix. An element of
 * another namespace is never taken for it. A document type is refused, because it can define entities.
 */
import { XMLParser, XMLValidator } from 'fast-xml-parser';

export type Node = { readonly [name: string]: Node | readonly Node[] | string | undefined };

export const EMPTY: Node = {};

const LISTS = new Set([
  ...['Stmt', 'Rpt', 'Ntfctn', 'Ntry', 'NtryDtls', 'TxDtls', 'Ustrd', 'Strd', 'Bal', 'RfrdDocInf', 'Rcrd'],
]);

export const MOST_NESTED = 100;
export const TOO_DEEP = `tags are nested deeper than ${MOST_NESTED}`;

const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  parseTagValue: false,
  parseAttributeValue: false,
  // Also decodes numeric character references (&#252;).
  htmlEntities: true,
  isArray: (name) => LISTS.has(localName(name)),
  maxNestedTags: MOST_NESTED,
});

/** A tag with 200,000 attributes took the validator 10 s. */
const LONG_TAG = /<[^<>]{100000}/;

/** What is wrong with an XML text, and at which of its lines. */
export class XmlFault extends Error {
  readonly line: number | undefined;

  constructor(reason: string, line?: number) {
    super(reason);
    this.line = line;
  }
}

const localName = (name: string) => name.slice(name.indexOf(':') + 1);

/** The namespace of each prefix. The default namespace has the prefix ''. */
export type Namespaces = Readonly<Record<string, string>>;

const OWN = /^$|\bcamt\.05[234]\b/;
/** In another namespace, these are refused: they look like money that is not read. */
const MONEY = /^(?:Document|BkToCstmr\w+|Stmt|Rpt|Ntfctn|Bal|Ntry|NtryDtls|TxDtls)$/;
const HAS_NAMESPACES = /<[^\s<>/"=]+:|\sxmlns/;

/** `namespaces`: of the element around this text. Throws an XmlFault. */
export function parseXml(text: string, namespaces: Namespaces = {}): Node {
  const parsed = parse(text);
  return HAS_NAMESPACES.test(text) || !OWN.test(namespaces[''] ?? '') ? inNamespaces(parsed, namespaces) : parsed;
}

function inNamespaces(parent: Node, around: Namespaces): Node {
  const named: Record<string, Node[string]> = {};
  for (const [name, value] of Object.entries(parent)) {
    for (const content of [value as Node | string].flat()) {
      if (/^[@#?]/.test(name)) named[name] = content;
      else add(name, content);
    }
  }
  return named;

  function add(name: string, content: Node | string) {
    const declared = Object.entries(typeof content === 'string' ? {} : content).flatMap(([each, value]) =>
      /^@xmlns(?::|$)/.test(each) ? [[each.slice('@xmlns:'.length), String(value)]] : [],
    );
    const scope: Namespaces = declared.length === 0 ? around : { ...around, ...Object.fromEntries(declared) };
    const prefix = name.slice(0, Math.max(name.indexOf(':'), 0));
    // A prefix that is not declared is an unknown namespace.
    const namespace = scope[prefix] ?? prefix;
    const local = localName(name);
    if (!OWN.test(namespace) && MONEY.test(local))
      throw new XmlFault(`has the element ${local} in the namespace '${namespace}', which is not camt`);
    const key = OWN.test(namespace) ? local : `{${namespace}}${local}`;
    // Supplementary data have elements of any namespace.
    const isRead = typeof content === 'object' && key !== 'SplmtryData';
    const node = (isRead ? inNamespaces(content, scope) : content) as Node;
    const before = named[key] as Node | Node[] | undefined;
    if (Array.isArray(before)) before.push(node);
    else if (before !== undefined) named[key] = [before, node];
    else named[key] = LISTS.has(key) ? [node] : node;
  }
}

function parse(text: string): Node {
  if (/<!DOCTYPE|<!ENTITY/i.test(text)) throw new XmlFault('has a document type (DOCTYPE), which is not allowed');
  if (LONG_TAG.test(text)) throw new XmlFault('has a tag of more than 100000 characters');
  const valid = XMLValidator.validate(text);
  if (valid !== true) throw new XmlFault(faultOf(valid.err.msg), valid.err.line);
  try {
    return parser.parse(text) as Node;
  } catch (error) {
    // The parser throws at names such as __proto__, deep nesting and too many entities.
    const { message } = error as Error;
    throw new XmlFault(/nested tags/.test(message) ? TOO_DEEP : `is XML that cannot be parsed: ${message}`);
  }
}

/** Lists of unclosed tags come from the validator as JSON: `Invalid '["Document", …]' found.` */
function faultOf(message: string) {
  const open = /^Invalid '(\[.*\])' found/s.exec(message)?.[1];
  if (open === undefined) return `is not XML: ${message}`;
  return open.split(',').length > MOST_NESTED ? TOO_DEEP : 'is not XML: has tags that are not closed';
}

export function child(node: Node | undefined, ...path: readonly string[]) {
  let at: Node = node ?? EMPTY;
  for (const name of path) {
    const next = at[name];
    const one = Array.isArray(next) ? (next as readonly Node[])[0] : next;
    at = typeof one === 'object' && one !== null ? (one as Node) : EMPTY;
  }
  return at;
}

export function nodes(node: Node, name: string) {
  const found = node[name];
  return Array.isArray(found) ? (found as readonly Node[]) : [];
}

export function textAt(node: Node, ...path: readonly string[]) {
  const parent = child(node, ...path.slice(0, -1));
  const found = parent[path.at(-1) as string];
  const one = Array.isArray(found) ? (found[0] as Node | string | undefined) : found;
  if (typeof one === 'string') return one.trim();
  const text = (one as Node | undefined)?.['#text'];
  return typeof text === 'string' ? text.trim() : '';
}

export function texts(node: Node, name: string) {
  const found = node[name];
  const all = (Array.isArray(found) ? found : found === undefined ? [] : [found]) as readonly (Node | string)[];
  return all
    .map((one) => (typeof one === 'string' ? one : String(one['#text'] ?? '')).trim())
    .filter((one) => one !== '');
}

export function attribute(node: Node, path: readonly string[], name: string) {
  const found = child(node, ...path)[`@${name}`];
  return typeof found === 'string' ? found.trim() : '';
}
