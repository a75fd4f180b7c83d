/** The process of one auditor task (src/audit/tasks.ts), with its kind and number as arguments. */

import { runTask } from '#audit/tasks';
import { TaskKind } from '#audit/tasks.sql';
import { readEnvironment } from '#config/environment';
import { openDatabase } from '#database/database';

const [kind, taskId] = process.argv.slice(2);
const environment = readEnvironment();
const database = await openDatabase(environment);
try {
  await runTask({ database, environment }, kind as TaskKind, Number(taskId));
} finally {
  await database.close();
}
