# An image of derivlang whose packages have the versions of constraints.txt, so that all workers have equal ones.
#   docker build -t derivlang .
#   docker run --rm -v "$PWD:/work" derivlang make --t trans,inv demo -o out
FROM python:3.11-slim

WORKDIR /src
COPY . .
RUN pip install --no-cache-dir -c constraints.txt '.[s3]' && rm -rf /src/*

RUN useradd --create-home --uid 1000 derivlang && mkdir /work && chown derivlang /work
USER derivlang
WORKDIR /work
ENTRYPOINT ["derivlang"]
