# docker build -t fox .                              on the CPU
# docker build -t fox --build-arg BACKEND=cuda .     on NVIDIA's cards
#
# GGML_NATIVE=OFF: the image must run on another processor than the one that built it (on x86: any with AVX2).
ARG BACKEND=cpu
ARG CPU_IMAGE=ubuntu:24.04
ARG CUDA_BUILD_IMAGE=nvidia/cuda:12.6.3-devel-ubuntu24.04
ARG CUDA_RUN_IMAGE=nvidia/cuda:12.6.3-runtime-ubuntu24.04

FROM ${CPU_IMAGE} AS build-cpu
ENV CMAKE_ARGS="-DGGML_NATIVE=OFF"

FROM ${CUDA_BUILD_IMAGE} AS build-cuda
# The builder has no driver: its programs are linked against one that is only there at run time.
ENV CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_CUDA=on -DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined"

FROM build-${BACKEND} AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/fox
WORKDIR /src
COPY pyproject.toml ./
# llama.cpp first and alone: a change in fox does not build it again.
RUN sed -n 's/.*"\(llama-cpp-python==[^"]*\)".*/\1/p' pyproject.toml > llama.txt \
    && CMAKE_BUILD_PARALLEL_LEVEL="$(nproc)" /opt/fox/bin/pip install --no-cache-dir -r llama.txt
COPY README.md LICENSE ./
COPY fox ./fox
RUN /opt/fox/bin/pip install --no-cache-dir '.[starter]'

FROM ${CPU_IMAGE} AS run-cpu

FROM ${CUDA_RUN_IMAGE} AS run-cuda

FROM run-${BACKEND}
RUN apt-get update \
    && apt-get install -y --no-install-recommends libgomp1 python3 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home fox \
    && install -d -o fox -g fox /home/fox/.cache/ferrumox/models
COPY --from=build /opt/fox /opt/fox
ENV PATH=/opt/fox/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
WORKDIR /home/fox
VOLUME /home/fox/.cache/ferrumox/models
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s \
    CMD ["python3", "-c", "from http.client import HTTPConnection as C; c = C('127.0.0.1', 8080, timeout=4); c.request('GET', '/health'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["fox"]
CMD ["serve", "--host", "0.0.0.0"]
