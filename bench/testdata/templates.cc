// Work for a compiler whose stacks are captured: it ends long after they are.
#include <algorithm>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>

using Words = std::map<std::string, std::vector<int>>;

template <int N>
struct Layer {
	static int run(Words &words)
	{
		words[std::to_string(N)].push_back(N);
		std::sort(words["a"].begin(), words["a"].end(), [](int a, int b) { return a + N < b; });
		return Layer<N - 1>::run(words) + N;
	}
};

template <>
struct Layer<0> {
	static int run(Words &) { return 0; }
};

int main()
{
	Words words;
	return Layer<200>::run(words) + std::regex_match("abcd", std::regex("a(b|c)*d"));
}
