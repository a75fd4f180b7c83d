/** XML of banks as plain nodes, without name space prefixes. A document type is refused, because it can define entities. */
import { XMLParser, XMLValidator } from 'fast-xml-parser';

export type Node = { readonly [name: string]: Node | readonly Node[] | string | undefined };

const LISTS = new Set([
  ...['Stmt', 'Rpt', 'Ntfctn', 'Ntry', 'NtryDtls', 'TxDtls', 'Ustrd', 'Strd', 'Bal', 'RfrdDocInf', 'Rcrd'],
]);

const MOST_NESTED = 100;
const TOO_DEEP = `tags are nested deeper than ${MOST_NESTED}`;

const parser = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  removeNSPrefix: true,
  parseTagValue: false,
  parseAttributeValue: false,
  // Also decodes numeric character references (&#252;).
  htmlEntities: true,
  isArray: (name) => LISTS.has(name),
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

/** Throws an XmlFault. */
export function parseXml(text: string): Node {
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

export const EMPTY: Node = {};

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
