/**
 * Embeds an e-invoice in a PDF/A-3 as Factur-X 1.0 (ZUGFeRD 2) requires: the file, its relationship to the PDF, and
 * metadata.
 */

const NAMESPACE = 'urn:factur-x:pdfa:CrossIndustryDocument:invoice:1p0#';
const FILE_NAME = 'factur-x.xml';

const FIELDS = [
  ['DocumentFileName', 'name of the embedded XML invoice file', FILE_NAME],
  ['DocumentType', 'type of the document', 'INVOICE'],
  ['Version', 'version of the standard', '1.0'],
  ['ConformanceLevel', 'profile of the embedded XML invoice', 'EN 16931'],
] as const;

/** `at` is the date of the document, and the only time that the bytes depend on. */
export function embedFacturX(document: PDFKit.PDFDocument, xml: Uint8Array, at: Date) {
  // pdfkit supports `relationship`, but its types do not declare it.
  const attachment: PDFKit.Mixins.PDFAttachmentOptions & { readonly relationship: string } = {
    name: FILE_NAME,
    type: 'text/xml',
    description: 'Factur-X invoice',
    creationDate: at,
    modifiedDate: at,
    relationship: 'Alternative',
  };
  document.file(Buffer.from(xml), attachment);
  // pdfkit writes only the date of creation.
  const modified = `<xmp:ModifyDate>${at.toISOString().replace('.000', '')}</xmp:ModifyDate>`;
  document.appendXML(
    `${METADATA}<rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/">${modified}</rdf:Description>`,
  );
}

const METADATA = `
<rdf:Description rdf:about="" xmlns:fx="${NAMESPACE}">
${FIELDS.map(([name, , value]) => `<fx:${name}>${value}</fx:${name}>`).join('\n')}
</rdf:Description>
<rdf:Description rdf:about="" xmlns:pdfaExtension="http://www.aiim.org/pdfa/ns/extension/"
 xmlns:pdfaSchema="http://www.aiim.org/pdfa/ns/schema#" xmlns:pdfaProperty="http://www.aiim.org/pdfa/ns/property#">
<pdfaExtension:schemas><rdf:Bag><rdf:li rdf:parseType="Resource">
<pdfaSchema:schema>Factur-X PDFA Extension Schema</pdfaSchema:schema>
<pdfaSchema:namespaceURI>${NAMESPACE}</pdfaSchema:namespaceURI>
<pdfaSchema:prefix>fx</pdfaSchema:prefix>
<pdfaSchema:property><rdf:Seq>
${FIELDS.map(
  ([name, meaning]) => `<rdf:li rdf:parseType="Resource"><pdfaProperty:name>${name}</pdfaProperty:name>
<pdfaProperty:valueType>Text</pdfaProperty:valueType><pdfaProperty:category>external</pdfaProperty:category>
<pdfaProperty:description>${meaning}</pdfaProperty:description></rdf:li>`,
).join('\n')}
</rdf:Seq></pdfaSchema:property>
</rdf:li></rdf:Bag></pdfaExtension:schemas></rdf:Description>
`;
