import { FastifyReply, FastifyRequest } from 'fastify';
import { ComponentChildren } from 'preact';
import { outerPage } from '#console/page';
import { outerOf } from '#console/problem';
import { Shared } from '#http/shared';

export function sendOuterPage(
  { shared, request, reply }: { shared: Shared; request: FastifyRequest; reply: FastifyReply },
  title: string,
  content: ComponentChildren,
  scripts?: readonly string[],
) {
  const outer = outerOf(shared, request);
  return reply
    .type('text/html; charset=utf-8')
    .send(outerPage({ ...outer, brand: outer.issuer, title, scripts }, content));
}
