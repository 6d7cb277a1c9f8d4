# The image of the operator: `make image` builds the wheel first, then this.
# What is installed is what requirements/runtime.txt names, by hash.
ARG PYTHON=3.13-slim

FROM docker.io/library/python:${PYTHON} AS build
COPY requirements/runtime.txt /
RUN python -m venv --without-pip /opt/dovetail \
 && python -m pip --python /opt/dovetail/bin/python install --no-cache-dir --no-deps --require-hashes -r /runtime.txt
COPY build/wheel/dovetail-*.whl /
RUN python -m pip --python /opt/dovetail/bin/python install --no-cache-dir --no-deps --no-index /dovetail-*.whl \
 && /opt/dovetail/bin/python -m compileall -q /opt/dovetail/lib

FROM docker.io/library/python:${PYTHON}
COPY --from=build /opt/dovetail /opt/dovetail
# The root file system may be read-only: nothing is written at run time.
ENV PATH=/opt/dovetail/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /
EXPOSE 8080
ENTRYPOINT ["python", "-m", "dovetail"]
CMD ["run"]
