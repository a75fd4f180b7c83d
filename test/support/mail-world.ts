/** A world whose e-mails go to a real mail server. A test file has one of each, and they end with it. */
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { startOver } from '../close/start-over.ts';
import { type MailServer, startMailServer } from './mail-server.ts';
import { openWorld, type World } from './world.ts';

export interface MailWorld {
  readonly world: World;
  readonly server: MailServer;
}

/** Opens both before the file's first test and passes them to `use`. */
export function openMailWorld(use: (opened: MailWorld) => void): void {
  let server: MailServer | undefined;
  let world: World | undefined;
  beforeAll(async () => {
    server = await startMailServer();
    world = await openWorld({ smtpUrl: server.url });
    use({ world, server });
  });
  afterAll(async () => {
    await world?.end();
    await server?.close();
  });
}

/** The same, but both are reset before each test and before hooks that the file registers later. */
export function freshMailWorld(use: (opened: MailWorld) => void): void {
  let opened: MailWorld;
  openMailWorld((both) => {
    opened = both;
    use(both);
  });
  beforeEach(async () => {
    const { world, server } = opened;
    await startOver(world);
    server.behaviour = 'accept';
    server.replies.clear();
    server.mails.length = 0;
  });
}
