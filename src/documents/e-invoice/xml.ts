/** Writes XML: escaped elements with attributes, in the given order, without empty elements. */

export type XmlElement = Readonly<{
  name: string;
  attributes: Readonly<Record<string, string>>;
  content: string | readonly XmlElement[];
}>;
type Content = string | readonly (XmlElement | undefined)[];

/** An element; undefined if its content is empty, because EN 16931 and Peppol allow no empty elements. */
export function element(
  name: string,
  content: Content,
  attributes: Readonly<Record<string, string>> = {},
): XmlElement | undefined {
  if (typeof content === 'string') return content === '' ? undefined : { name, attributes, content };
  const children = content.filter((child) => child !== undefined);
  return children.length === 0 ? undefined : { name, attributes, content: children };
}

export function xmlFile(root: XmlElement): Buffer {
  return Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${written(root, '')}\n`);
}

function written({ name, attributes, content }: XmlElement, indent: string): string {
  const start = [name, ...Object.entries(attributes).map(([key, value]) => `${key}="${escaped(value)}"`)].join(' ');
  if (typeof content === 'string') return `${indent}<${start}>${escaped(content)}</${name}>`;
  if (content.length === 0) return `${indent}<${start}/>`;
  const children = content.map((child) => written(child, `${indent}  `)).join('\n');
  return `${indent}<${start}>\n${children}\n${indent}</${name}>`;
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Characters that XML 1.0 cannot contain, even escaped. Each becomes a replacement character. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern looks for them.
const NOT_IN_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Cs}/gu;

/** Carriage returns and tabs are escaped, because a reader of XML would change them. */
const escaped = (text: string) =>
  text
    .replace(NOT_IN_XML, '\ufffd')
    .replace(/[&<>"]/g, (character) => ENTITIES[character] as string)
    .replace(/[\t\r]/g, (character) => `&#${character.charCodeAt(0)};`);
