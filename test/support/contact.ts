/** Signs a partner's contact in to the partner's place without sending the e-mail with the link. */
import { makePartnerLink } from '../../src/partners/sign-in.ts';
import { Browser } from './console.ts';
import type { Served } from './service.ts';
import type { World } from './world.ts';

/** The path of a link that was just sent to the contact on file. */
export async function linkOf(world: World, partnerId: string): Promise<string> {
  const made = await world.database.transaction((tx) => makePartnerLink(tx, world, partnerId));
  if (made === undefined) throw new Error(`${partnerId} has no contact`);
  return `/place/sign-in#${made.secret}`;
}

export async function contactOf(world: World, served: Served, partnerId: string): Promise<Browser> {
  const browser = new Browser(served.url);
  const answer = await browser.post(await linkOf(world, partnerId));
  if (answer.status !== 303) throw new Error(`not signed in: ${answer.status}`);
  await browser.get('/place');
  return browser;
}
