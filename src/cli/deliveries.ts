import { describeOtherCurrency } from '#close/other-currencies';
import { Delivery } from '#delivery/document';
import { TreeHead } from '#log/note';
import { checkpointTitle } from '#log/text';
import { nameOf } from '#mail/log';
import { EmailResult } from '#mail/outbox';
import { Reporter } from '#month-end/month-end';
import { capitalized } from '#text';
import { Output, Progress } from './output.ts';

/** Advances a progress bar. Notes on unsent documents and e-mails follow it. */
export async function withProgress<Result>(output: Output, work: (reporter: Reporter) => Promise<Result>) {
  let progress: Progress | undefined;
  const remarks: string[] = [];
  try {
    return await work({
      onClosed: (month, others) => {
        output.note(`Closed ${month}.`);
        for (const other of others) output.note(describeOtherCurrency(other));
      },
      onStart: (documents) => {
        progress = output.progress('Delivering', documents);
      },
      onDelivery: (delivery) => {
        progress?.advance();
        remarks.push(...remarksOn(delivery));
      },
      onCheckpointRefused: (refusal) => remarks.push(`No checkpoint was taken: ${refusal.message}`),
      onEmail: (result) => {
        if (result.status !== 'sent') remarks.push(describeEmail(result));
      },
      onNotStamped: (head, reason) => remarks.push(describeUnstamped(head, reason)),
    });
  } finally {
    progress?.done();
    for (const remark of remarks) output.note(remark);
  }
}

function remarksOn({ number, status, detail, link }: Delivery) {
  const remarks = link === undefined ? [] : [`${number} ${link}`];
  if (status !== 'sent' && status !== 'withdrawn' && status !== 'no_email') {
    remarks.push(`${number} ${status === 'deferred' ? 'not delivered yet' : status}: ${detail}`);
  }
  return remarks;
}

/** The reason starts with the name of the authority. */
const describeUnstamped = (head: TreeHead, reason: string) =>
  `The ${checkpointTitle(head)} has no time stamp yet: ${reason}`;

function describeEmail({ email, status, detail }: EmailResult) {
  const name = nameOf(email);
  const state = status === 'deferred' ? 'not sent yet' : status;
  return `${capitalized(name)} ${state}${detail === '' ? '' : `: ${detail}`}`;
}
