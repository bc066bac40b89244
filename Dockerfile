# One file for every program of the estate: a build stage a program, so that one
# is not built again because another one changed, and a final image a program,
# named as the target.
#
#   docker build --target gateway .

FROM golang:1.26-trixie AS build-base
# Each module is built by itself, as its go.mod says; go.work is for the desk.
ENV CGO_ENABLED=0 GOWORK=off GOFLAGS="-trimpath -buildvcs=false"
WORKDIR /src
# The directories that the programs write to, for images that have no mkdir.
RUN mkdir -p /empty/data

FROM build-base AS build-specialroutes
COPY services services
COPY migrations migrations
COPY specialroutes specialroutes
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    cd specialroutes && go build -ldflags="-s -w" -o /out/specialroutes .

FROM build-base AS build-gateway
COPY services services
COPY gateway gateway
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    cd gateway && go build -ldflags="-s -w" -o /out/gateway .

FROM build-base AS build-orgservice-old
COPY services services
COPY orgservice-old orgservice-old
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    cd orgservice-old && go build -ldflags="-s -w" -o /out/orgservice-old .

FROM build-base AS build-orgservice-new
COPY services services
COPY orgservice-new orgservice-new
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    cd orgservice-new && go build -ldflags="-s -w" -o /out/orgservice-new .

FROM build-base AS build-services
COPY services services
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    cd services && go build -ldflags="-s -w" -o /out/ ./cmd/licensingservice ./cmd/estate

# What all final images share: certificates to check others by, /data to write
# to, and a user that is not root and owns nothing else. No shell, no package.
FROM scratch AS base
COPY --from=build-base /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build-base --chown=65532:65532 /empty/data /data
WORKDIR /data
USER 65532:65532

FROM base AS specialroutes
COPY --from=build-specialroutes /out/specialroutes /
ENV SPECIALROUTES_LISTEN=:8910
EXPOSE 8910
HEALTHCHECK --interval=3s --timeout=5s --start-period=30s CMD ["/specialroutes", "healthcheck"]
ENTRYPOINT ["/specialroutes"]

FROM base AS gateway
COPY --from=build-gateway /out/gateway /
# The admin port has no authentication: publish it on the loopback only.
ENV GATEWAY_LISTEN=:5555 GATEWAY_ADMIN=:5556 GATEWAY_RECORDS_FILE=/data/records.json
EXPOSE 5555 5556
HEALTHCHECK --interval=3s --timeout=5s --start-period=30s CMD ["/gateway", "healthcheck"]
ENTRYPOINT ["/gateway"]

FROM base AS orgservice-old
COPY --from=build-orgservice-old /out/orgservice-old /
ENV LISTEN=:8085
EXPOSE 8085
HEALTHCHECK --interval=3s --timeout=5s --start-period=10s CMD ["/orgservice-old", "healthcheck"]
ENTRYPOINT ["/orgservice-old"]

FROM base AS orgservice-new
COPY --from=build-orgservice-new /out/orgservice-new /
ENV LISTEN=:8087
EXPOSE 8087
HEALTHCHECK --interval=3s --timeout=5s --start-period=10s CMD ["/orgservice-new", "healthcheck"]
ENTRYPOINT ["/orgservice-new"]

FROM base AS licensingservice
COPY --from=build-services /out/licensingservice /
ENV LISTEN=:8080
EXPOSE 8080
HEALTHCHECK --interval=3s --timeout=5s --start-period=10s CMD ["/licensingservice", "healthcheck"]
ENTRYPOINT ["/licensingservice"]

# Writes the book's record once; it serves nothing.
FROM base AS seed
COPY --from=build-services /out/estate /
ENTRYPOINT ["/estate", "seed"]
