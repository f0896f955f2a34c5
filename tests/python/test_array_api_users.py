"""Functions of any array library's arrays on tensors: array-api-compat's helpers, SciPy's and scikit-learn's."""
import os
import subprocess
import sys

import array_api_compat
import numpy as np
import pytest

import weft.array_api as xp
from weft import Tensor


def test_array_api_compat():
    x = xp.asarray(np.arange(6.0).reshape(2, 3))
    assert array_api_compat.is_array_api_obj(x) and array_api_compat.array_namespace(x, x + 1) is xp
    assert array_api_compat.array_namespace(x, api_version="2024.12") is xp and array_api_compat.is_array_api_strict_namespace(xp) is False
    assert array_api_compat.size(x) == 6 and array_api_compat.device(x) == x.device
    assert array_api_compat.to_device(x, x.device).tolist() == x.tolist()


SCIPY = """
import numpy as np, scipy.cluster.vq, scipy.differentiate, scipy.integrate, scipy.optimize, scipy.optimize.elementwise, scipy.signal, scipy.special, scipy.stats
import weft.array_api as xp
from weft import Tensor

a = np.random.default_rng(0).normal(size=(40, 5))
FUNCTIONS = {
    "logsumexp": lambda x: scipy.special.logsumexp(x, axis=0),
    "softmax": lambda x: scipy.special.softmax(x, axis=1),
    "log_softmax": lambda x: scipy.special.log_softmax(x, axis=1),
    "expit": scipy.special.expit,
    "gammaln": lambda x: scipy.special.gammaln(abs(x) + 1),
    "xlogy": lambda x: scipy.special.xlogy(abs(x), abs(x) + 1),
    "zscore": scipy.stats.zscore,
    "skew": scipy.stats.skew,
    "kurtosis": scipy.stats.kurtosis,
    "moment": lambda x: scipy.stats.moment(x, 3),
    "sem": scipy.stats.sem,
    "variation": scipy.stats.variation,
    "gmean": lambda x: scipy.stats.gmean(abs(x)),
    "pmean": lambda x: scipy.stats.pmean(abs(x), 2),
    "ttest_1samp": lambda x: scipy.stats.ttest_1samp(x, 0.0).pvalue,
    "ttest_ind": lambda x: scipy.stats.ttest_ind(x, x * 2 + 1).statistic,
    "pearsonr": lambda x: scipy.stats.pearsonr(x[:, 0], x[:, 1]).statistic,
    "normaltest": lambda x: scipy.stats.normaltest(x).statistic,
    "chisquare": lambda x: scipy.stats.chisquare(abs(x[:, 0])).statistic,
    "entropy": lambda x: scipy.stats.entropy(abs(x)),
    "rankdata": scipy.stats.rankdata,
    "quantile": lambda x: scipy.stats.quantile(x, 0.3),
    "iqr": scipy.stats.iqr,
    "mannwhitneyu": lambda x: scipy.stats.mannwhitneyu(x[:, 0], x[:, 1]).statistic,
    "kruskal": lambda x: scipy.stats.kruskal(x[:, 0], x[:, 1]).statistic,
    "whiten": scipy.cluster.vq.whiten,
    "vq": lambda x: scipy.cluster.vq.vq(x, x[:3, :])[1],
    "trapezoid": lambda x: scipy.integrate.trapezoid(x, axis=0),
    "cumulative_trapezoid": lambda x: scipy.integrate.cumulative_trapezoid(x, axis=0),
    "detrend": lambda x: scipy.signal.detrend(x, axis=0),
    "convolve": lambda x: scipy.signal.convolve(x[:, 0], x[:5, 1], method="direct"),
    "rosen": lambda x: scipy.optimize.rosen(x[0, :]),
    "rosen_der": lambda x: scipy.optimize.rosen_der(x[0, :]),
    "find_root": lambda x: scipy.optimize.elementwise.find_root(lambda y: y * y - 2, (x[0, :2] * 0, x[0, :2] * 0 + 2)).x,
    "derivative": lambda x: scipy.differentiate.derivative(lambda y: y ** 3, x[0, :]).df,
}
for name, function in FUNCTIONS.items():
    got = function(xp.asarray(a))
    assert isinstance(got, Tensor), f"{name}: {type(got)}"
    np.testing.assert_allclose(got.numpy(), function(a), rtol=1e-6, atol=1e-9, err_msg=name)
print(len(FUNCTIONS), "functions")
"""

LEARN = """
import numpy as np, sklearn
from sklearn import decomposition, discriminant_analysis, linear_model, metrics, preprocessing
import weft.array_api as xp
from weft import Tensor

random = np.random.default_rng(0)
a = random.normal(size=(60, 4))
b = a @ np.array([1.0, -2.0, 0.5, 0.0]) + 1
label = (a[:, 0] + 0.3 * random.normal(size=60) > 0).astype(np.int32)
CASES = {
    "StandardScaler": lambda x, y, c: preprocessing.StandardScaler().fit(x).transform(x),
    "MinMaxScaler": lambda x, y, c: preprocessing.MinMaxScaler().fit_transform(x),
    "MaxAbsScaler": lambda x, y, c: preprocessing.MaxAbsScaler().fit_transform(x),
    "Normalizer": lambda x, y, c: preprocessing.Normalizer().fit_transform(x),
    "PCA": lambda x, y, c: abs(decomposition.PCA(n_components=2, svd_solver="full").fit_transform(x)),
    "PCA by covariance": lambda x, y, c: abs(decomposition.PCA(n_components=2, svd_solver="covariance_eigh").fit_transform(x)),
    "Ridge": lambda x, y, c: linear_model.Ridge(solver="svd").fit(x, y).predict(x),
    "LinearDiscriminantAnalysis": lambda x, y, c: discriminant_analysis.LinearDiscriminantAnalysis().fit(x, c).predict(x),
}
SCORES = {
    "r2": lambda x, y, c: metrics.r2_score(y, y + x[:, 0] / 10),
    "mean_squared_error": lambda x, y, c: metrics.mean_squared_error(y, y + x[:, 0] / 10),
    "mean_absolute_error": lambda x, y, c: metrics.mean_absolute_error(y, y + x[:, 0] / 10),
    "accuracy": lambda x, y, c: metrics.accuracy_score(c, c),
    "cosine_similarity": lambda x, y, c: metrics.pairwise.cosine_similarity(x)[0, 1],
    "rbf_kernel": lambda x, y, c: metrics.pairwise.rbf_kernel(x)[0, 1],
}
with sklearn.config_context(array_api_dispatch=True):
    for name, function in CASES.items():
        got = function(xp.asarray(a), xp.asarray(b), xp.asarray(label))
        assert isinstance(got, Tensor), f"{name}: {type(got)}"
        np.testing.assert_allclose(got.numpy(), function(a, b, label), rtol=1e-6, atol=1e-9, err_msg=name)
    for name, function in SCORES.items():
        got = function(xp.asarray(a), xp.asarray(b), xp.asarray(label))
        np.testing.assert_allclose(float(got), float(function(a, b, label)), rtol=1e-6, err_msg=name)
print(len(CASES) + len(SCORES), "functions")
"""


@pytest.mark.parametrize("library, program", [("scipy", SCIPY), ("sklearn", LEARN)], ids=["scipy", "scikit-learn"])
def test_other_libraries(library, program):
    """In a process of their own: SciPy reads SCIPY_ARRAY_API when it is imported."""
    pytest.importorskip(library, reason=f"{library} is not installed (WEFT_TEST_TORCH=1)")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], env=os.environ | {"SCIPY_ARRAY_API": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "functions" in done.stdout


def test_programs_of_any_array():
    """A function written for the standard, on tensors and NumPy's arrays."""
    def standardized(x):
        ns = array_api_compat.array_namespace(x)
        return (x - ns.mean(x, axis=0)) / ns.std(x, axis=0, correction=1)
    a = np.random.default_rng(1).normal(size=(20, 3))
    got = standardized(xp.asarray(a))
    assert isinstance(got, Tensor)
    np.testing.assert_allclose(got.numpy(), standardized(a), rtol=1e-12)
