# The same as `python3 .ci/start ...`, for fingers that type `make`.
.PHONY: train test check docs

train:
	python3 .ci/start train forecast

test:
	python3 .ci/start test

check:
	python3 .ci/start check

docs:
	python3 .ci/start docs
