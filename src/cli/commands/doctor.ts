import { Definition, EXIT, Output, table, wrapped } from '#cli/command';
import { examine } from '#cli/doctor';
import { plural } from '#text';
import { describeDkim } from './mail.ts';

export const define: Definition = (command, action) => {
  command.addHelpText('after', '\nExit status 4: there is a problem.').action(action(doctor));
};

const WIDTH = 56;

async function doctor(output: Output) {
  const findings = await examine();
  const problems = findings.filter(({ state }) => state === 'problem').length;
  output.print({ problems, findings }, () => {
    const rows = findings.flatMap(({ check, state, says }) => {
      const [first = '', ...more] = wrapped(says, WIDTH);
      return [[check, state, first], ...more.map((text) => ['', '', text])];
    });
    const summary = problems === 0 ? 'This machine can run Reckoner.' : `${plural(problems, 'problem')} to solve.`;
    const records = findings.flatMap(({ publish }) => (publish === undefined ? [] : [describeDkim(publish)]));
    return [table(['check', 'state', 'what'], rows), ...records, summary].join('\n\n');
  });
  return problems === 0 ? EXIT.done : EXIT.attention;
}
