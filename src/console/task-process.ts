/** The process of one auditor task (src/audit/tasks.ts), with its kind and number as arguments. */

import type { TaskKind } from '../audit/tasks.sql.ts';
import { runTask } from '../audit/tasks.ts';
import { readEnvironment } from '../config/environment.ts';
import { openDatabase } from '../database/database.ts';

const [kind, taskId] = process.argv.slice(2);
const environment = readEnvironment();
const database = await openDatabase(environment);
try {
  await runTask({ database, environment }, kind as TaskKind, Number(taskId));
} finally {
  await database.close();
}
