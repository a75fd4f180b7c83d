/**
 * Payouts of the connected accounts: what each paid out, as the processor lists it, and which line of the bank it was. So
 * a share is followed from its quote into the bank.
 */
import type { Knex } from 'knex';

/** What every fact says of its recording. */
const RECORDED = `recorded_at timestamptz NOT NULL,
      event_id bigint NOT NULL REFERENCES audit_events`;

export async function up(knex: Knex): Promise<void> {
  await knex.raw(`
    ALTER TABLE balance_transactions ADD CONSTRAINT balance_transaction_of_its_account UNIQUE (balance_transaction_id, account, currency)`);

  // A movement is paid out once: what of a payout that failed comes back is another movement, of the next payout.
  await knex.raw(`
    CREATE TABLE payout_contents (
      balance_transaction_id bigint PRIMARY KEY,
      payout_transaction_id bigint NOT NULL,
      account text COLLATE "C" NOT NULL,
      currency text COLLATE "C" NOT NULL,
      ${RECORDED},
      CONSTRAINT payout_content_of_its_account FOREIGN KEY (balance_transaction_id, account, currency)
        REFERENCES balance_transactions (balance_transaction_id, account, currency),
      CONSTRAINT payout_content_of_a_movement FOREIGN KEY (payout_transaction_id, account, currency)
        REFERENCES balance_transactions (balance_transaction_id, account, currency),
      CONSTRAINT payout_content_not_itself CHECK (balance_transaction_id <> payout_transaction_id)
    )`);
  await knex.raw(`CREATE INDEX payout_contents_of_payout ON payout_contents (payout_transaction_id)`);
  await knex.raw(`CALL make_append_only('payout_contents')`);
  await knex.raw(`CALL make_fact('payout_contents')`);

  // What came to the bank from a connected account. It is settled in the same act: its fees are those that it pays.
  await knex.raw(`
    CREATE TABLE account_payouts (
      payout_id bigint PRIMARY KEY REFERENCES payout_settlements,
      account text COLLATE "C" NOT NULL,
      currency text COLLATE "C" NOT NULL,
      -- NULL: nobody tells us of the account's payouts, and a person says that it is one.
      balance_transaction_id bigint CONSTRAINT account_payout_arrives_once UNIQUE,
      ${RECORDED},
      CONSTRAINT account_payout_of_its_account FOREIGN KEY (balance_transaction_id, account, currency)
        REFERENCES balance_transactions (balance_transaction_id, account, currency)
    )`);
  await knex.raw(`CALL make_append_only('account_payouts')`);
  await knex.raw(`CALL make_fact('account_payouts')`);
  await knex.raw(
    `CREATE INDEX payouts_at_the_processor ON balance_transactions (account, moved_at) WHERE type = 'payout'`,
  );
}
