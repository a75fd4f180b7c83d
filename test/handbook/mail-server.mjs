// A mail server with STARTTLS and authentication, for the machine of the handbook. It writes each message to a folder.
// node mail-server.mjs FOLDER KEY CERTIFICATE
import { readFileSync, writeFileSync } from 'node:fs';
import { SMTPServer } from 'smtp-server';

const [folder, key, cert] = process.argv.slice(2);
let received = 0;
new SMTPServer({
  key: readFileSync(key),
  cert: readFileSync(cert),
  onAuth: ({ username, password }, _session, answer) =>
    password === 'mail-secret' ? answer(null, { user: username }) : answer(new Error('wrong password')),
  onData: (stream, _session, answer) => {
    const chunks = [];
    stream.on('data', (chunk) => chunks.push(chunk));
    stream.on('end', () => {
      received += 1;
      writeFileSync(`${folder}/${String(received).padStart(4, '0')}.eml`, Buffer.concat(chunks));
      answer(null);
    });
  },
}).listen(587, '127.0.0.1');
