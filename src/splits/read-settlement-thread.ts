/** The thread that reads one settlement file. See read-settlement.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { readSettlementText, type SettlementTask } from './read-settlement.ts';

parentPort?.postMessage(readSettlementText(workerData as SettlementTask));
