/** Reports of mail servers that gave up a recipient, as Postfix writes them. */

export interface Report {
  readonly messageId: string;
  readonly final?: string;
  readonly original?: string;
  readonly action?: string;
  readonly status?: string;
  /** Only the headers of what came back, as RFC 3462 allows. */
  readonly headersOnly?: boolean;
  /** What came back is left out; the envelope's id names it. */
  readonly envelopeId?: boolean;
}

export const report = (given: Report): Buffer => {
  const { messageId, final = 'ap@partner.example', original, action = 'failed', status = '5.1.1' } = given;
  const returned = ['From: billing@protection.example', `Message-ID:`, ` ${messageId}`, 'Subject: Invoice', ''];
  return Buffer.from(
    [
      'From: MAILER-DAEMON@relay.example (Mail Delivery System)',
      'To: billing@protection.example',
      'Subject: Undelivered Mail Returned to Sender',
      'Auto-Submitted: auto-replied',
      'MIME-Version: 1.0',
      'Content-Type: multipart/report; report-type=delivery-status; boundary="1A2B.1/relay.example"',
      'Message-Id: <20260801.1A2B@relay.example>',
      '',
      'This is a MIME-encapsulated message.',
      '',
      '--1A2B.1/relay.example',
      'Content-Description: Notification',
      'Content-Type: text/plain; charset=us-ascii',
      '',
      'This is the mail system at host relay.example.',
      '',
      '--1A2B.1/relay.example',
      'Content-Description: Delivery report',
      'Content-Type: message/delivery-status',
      '',
      'Reporting-MTA: dns; relay.example',
      ...(given.envelopeId ? [`Original-Envelope-Id: ${messageId.slice(1, -1)}`] : []),
      'Arrival-Date: Sat,  1 Aug 2026 10:00:00 +0000 (UTC)',
      '',
      `Final-Recipient: rfc822; ${final}`,
      ...(original === undefined ? [] : [`Original-Recipient: rfc822;${original}`]),
      `Action: ${action}`,
      `Status: ${status}`,
      'Remote-MTA: dns; mx.partner.example',
      'Diagnostic-Code: smtp; 550 5.1.1 <ap@partner.example>: Recipient address',
      '    rejected: User unknown',
      '',
      ...(given.envelopeId
        ? []
        : [
            '--1A2B.1/relay.example',
            'Content-Description: Undelivered Message',
            `Content-Type: ${given.headersOnly ? 'text/rfc822-headers' : 'message/rfc822'}`,
            '',
            ...returned,
            ...(given.headersOnly ? [] : ['Dear all,', '']),
          ]),
      '--1A2B.1/relay.example--',
      '',
    ].join('\r\n'),
  );
};
