// Web.exe SECONDS: a Kestrel server, and eight clients that ask it all the time.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.Logging;

public static class Web
{
	public static async Task Main(string[] args)
	{
		var builder = WebApplication.CreateBuilder();
		builder.Logging.ClearProviders();
		builder.WebHost.UseUrls("http://127.0.0.1:0");
		var app = builder.Build();
		app.MapGet("/{name}", (string name) => Results.Json(new Dictionary<string, string> { ["hello"] = name }));
		await app.StartAsync();
		var server = (IServer)app.Services.GetService(typeof(IServer));
		string address = server.Features.Get<IServerAddressesFeature>().Addresses.First();
		var end = DateTime.UtcNow.AddSeconds(int.Parse(args[0]));
		long answers = 0;
		await Task.WhenAll(Enumerable.Range(0, 8).Select(async i =>
		{
			using var client = new HttpClient();
			for (; DateTime.UtcNow < end; Interlocked.Increment(ref answers))
				await client.GetStringAsync(address + "/" + i);
		}));
		await app.StopAsync();
		Console.WriteLine(answers > 0 ? "WEB DONE" : "no answer");
	}
}
